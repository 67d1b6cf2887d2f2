# An MCP server over stdio that only lists: server.sh FIRST_PAGE [SECOND_PAGE [ERA]]
# ERA is `sessionful` (default), `sessionless`, or `broken`: sessionful, and its resources cannot be listed.
# The files hold the members of `tools`, parted by commas. It records its environment in FIRST_PAGE.env.
env >"$1.env"
era=${3:-sessionful}
resources=
[ "$era" != broken ] || resources=',"resources":{}'
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $era:$line in
    sessionless:*'"server/discover"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}\n' "$id"
        ;;
    sessionful:*'"initialize"'* | broken:*'"initialize"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}%s},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" "$resources"
        ;;
    *'"tools/list"'*'"cursor"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[%s]}}\n' "$id" "$(tr -d '\n' <"$2")"
        ;;
    *'"tools/list"'*)
        next=
        [ -z "$2" ] || next=',"nextCursor":"2"'
        printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[%s]%s}}\n' "$id" "$(tr -d '\n' <"$1")" "$next"
        ;;
    *'"id":'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id"
        ;;
    esac
done
