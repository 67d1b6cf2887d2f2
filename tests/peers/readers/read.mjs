// Reads bodies (one a line, in hexadecimal) and says what stands at each path, one JSON a line.

import { readFileSync } from "node:fs";

const paths = JSON.parse(process.argv[2]);

function at(value, path) {
  for (const step of path) {
    const holds =
      typeof step === "number"
        ? Array.isArray(value) && step < value.length
        : value !== null && typeof value === "object" && !Array.isArray(value) && Object.hasOwn(value, step);
    if (!holds) return { t: "absent" };
    value = value[step];
  }
  if (value === null) return { t: "null" };
  if (typeof value === "boolean") return { t: "bool", v: String(value) };
  if (typeof value === "number") return { t: "num", v: `${value}f` };
  if (typeof value === "string") return { t: "str", v: Buffer.from(value, "utf8").toString("hex") };
  return { t: "other" };
}

const lines = readFileSync(0, "utf8").split("\n");
lines.pop();
const out = lines.map((line) => {
  let value;
  try {
    value = JSON.parse(Buffer.from(line, "hex").toString("utf8"));
  } catch {
    return "null";
  }
  return JSON.stringify(paths.map((path) => at(value, path)));
});
process.stdout.write(out.join("\n") + "\n");
