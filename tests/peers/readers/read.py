"""Reads bodies (one a line, in hexadecimal) and says what stands at each path, one JSON a line."""

import json
import sys

PATHS = json.loads(sys.argv[1])


def at(value, path):
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return {"t": "absent"}
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return {"t": "absent"}
            value = value[step]
    if value is None:
        return {"t": "null"}
    if isinstance(value, bool):
        return {"t": "bool", "v": "true" if value else "false"}
    if isinstance(value, int):
        try:
            return {"t": "num", "v": str(value)}
        except ValueError:
            return {"t": "num", "v": repr(float(str(value)[:1] + "e999"))}
    if isinstance(value, float):
        return {"t": "num", "v": repr(value)}
    if isinstance(value, str):
        return {"t": "str", "v": value.encode("utf-8", "surrogatepass").hex()}
    return {"t": "other"}


for line in sys.stdin:
    try:
        value = json.loads(bytes.fromhex(line.strip()))
    except (ValueError, RecursionError):
        print("null")
        continue
    print(json.dumps([at(value, path) for path in PATHS]))
