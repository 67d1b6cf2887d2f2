# A server over stdio that executes every call, and then answers as the name of its tool has it:
# executes.sh FOLDER ERA
#
# FOLDER gets `started` (one process id a line), `heard` (one message a line) and `executed` (one tool
# a line). ERA is `sessionful` or `sessionless`. Names of tools begin with `x_`.
folder=$1
era=$2
echo "$$" >>"$folder/started"

# One tool with an argument that headers repeat.
tools='{"name":"x_n","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"N"}}}}'

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
error() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$1" "$2" "$3"; }

execute() {
    tool=${line#*\"name\":\"x_}
    tool=${tool%%\"*}
    printf '%s\n' "$tool" >>"$folder/executed"
    case $tool in
    code*) error "$id" "-${tool#code}" "the call failed" ;;
    session) error "$id" -32602 "Invalid session: initialize first" ;;
    half) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":" ;;
    words) echo "Traceback (most recent call last):" ;;
    eof) exec >/dev/null ;;
    crash) exit 9 ;;
    leave) exit 0 ;;
    *) answer "$id" '{"content":[],"resultType":"complete"}' ;;
    esac
}

while IFS= read -r line; do
    printf '%s\n' "$line" >>"$folder/heard"
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $era:$line in
    *'"method":"tools/call"'*) execute ;;
    sessionful:*'"method":"initialize"'*)
        answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"executes","version":"1"}}'
        ;;
    sessionless:*'"method":"server/discover"'*)
        answer "$id" '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
        ;;
    *'"method":"tools/list"'*) answer "$id" "{\"tools\":[$tools],\"resultType\":\"complete\"}" ;;
    sessionful:*'"method":"ping"'*) answer "$id" '{}' ;;
    *'"id":'*) error "$id" -32601 "no such method" ;;
    esac
done
