# An MCP server over stdio that only lists: server.sh FIRST_PAGE [SECOND_PAGE]
# The files hold the members of `tools`, parted by commas. It records its environment in FIRST_PAGE.env.
env >"$1.env"
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id"
        ;;
    *'"tools/list"'*'"cursor"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}\n' "$id" "$(tr -d '\n' <"$2")"
        ;;
    *'"tools/list"'*)
        next=
        [ -z "$2" ] || next=',"nextCursor":"2"'
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]%s}}\n' "$id" "$(tr -d '\n' <"$1")" "$next"
        ;;
    *'"id":'*)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id"
        ;;
    esac
done
