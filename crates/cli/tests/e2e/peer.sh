# A small MCP server over stdio, as a script: peer.sh FOLDER [MODE [GRANT]]
#
# FOLDER gets `started` (one process id a line) and `heard` (one message a line), and has the pipe
# `go` on which slow calls wait. Of a message it reads only what stands where the tests put it.
# A process with which toolgate itself lists the server starts without trouble, and records apart.
folder=$1
mode=${2:-}
trouble=$mode
case ${3:-} in
_toolgate_-*)
    folder=$folder/own
    mkdir -p "$folder"
    trouble=
    ;;
esac
echo "$$" >>"$folder/started"

case $trouble in
exits)
    echo "my database is missing" >&2
    exit 3
    ;;
silent)
    trap '' TERM
    while :; do sleep 1000; done
    ;;
stubborn)
    trap '' TERM
    ;;
late)
    read -r _ <"$folder/go"
    ;;
chatty)
    echo "Listening on stdio"
    echo "{ this is no message"
    ;;
esac

# What a listing one lists.
tools='{"name":"echo","title":"Echo","description":"Says what it is told.\nTwice if asked.","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to say"},"times":{"type":["integer","null"]},"tone":{"enum":["low","high"]}},"required":["text"]},"annotations":{"readOnlyHint":true}},{"name":"pid","inputSchema":{"type":"object"},"x-unknown":1.0}'
[ "$mode" != asking ] || tools='{"name":"ask","inputSchema":{"type":"object"}}'

# The resources that somebody wants to hear of; like other servers it tells them apart by URI alone.
followed=

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
text() { answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }

while IFS= read -r line; do
    printf '%s\n' "$line" >>"$folder/heard"
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    params=${line#*\"params\":}
    params=${params%\}}
    case $line in
    *'"method":"initialize"'*)
        version=${line#*\"protocolVersion\":\"}
        version=${version%%\"*}
        answer "$id" "{\"protocolVersion\":\"$version\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"peer\",\"version\":\"1\"}}"
        ;;
    *'"method":"tools/list"'*'"id":'* | *'"id":'*'"method":"tools/list"'*)
        if [ "$mode" = listing ] || [ "$mode" = asking ]; then
            answer "$id" "{\"tools\":[$tools]}"
        else
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such thing"}}\n' "$id"
        fi
        ;;
    *'"method":"resources/subscribe"'* | *'"method":"resources/unsubscribe"'*)
        uri=${params#*\"uri\":\"}
        uri=${uri%%\"*}
        before=$followed
        followed=
        for other in $before; do [ "$other" = "$uri" ] || followed="$followed $other"; done
        case $line in *'"method":"resources/subscribe"'*) followed="$followed $uri" ;; esac
        answer "$id" '{}'
        ;;
    *'"method":"ping"'*) answer "$id" '{}' ;;
    *'"name":"echo"'*) answer "$id" "{\"content\":[],\"structuredContent\":$params}" ;;
    *'"name":"pid"'*) text "$id" "$$" ;;
    *'"name":"mode"'*) text "$id" "$mode" ;;
    *'"name":"env"'*) text "$id" "$(tr '\0' ' ' <"/proc/$$/environ")" ;;
    *'"name":"slow"'*) (read -r _ <"$folder/go" && text "$id" "at last") & ;;
    *'"name":"progress"'*)
        token=${params#*\"progressToken\":}
        token=${token%%[,\}]*}
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$token"
        text "$id" "done"
        ;;
    *'"name":"ask"'*)
        waiting=$id
        echo '{"jsonrpc":"2.0","id":"q-1","method":"sampling/createMessage","params":{"maxTokens":1}}'
        ;;
    *'"id":"q-1"'*) answer "$waiting" "{\"content\":[],\"structuredContent\":$line}" ;;
    *'"name":"crash"'*)
        echo "out of paper" >&2
        exit 9
        ;;
    *'"name":"mutter"'*)
        echo "a word to the people" >&2
        text "$id" "said"
        ;;
    *'"name":"family"'*)
        sleep 1000 &
        text "$id" "$!"
        ;;
    *'"name":"notify"'*)
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        text "$id" "done"
        ;;
    *'"name":"gossip"'*)
        echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"a word on one call"}}'
        echo '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"of one call"}}'
        text "$id" "done"
        ;;
    *'"name":"update"'*)
        for uri in $followed; do
            printf '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%s"}}\n' "$uri"
        done
        text "$id" "done"
        ;;
    *'"name":"big"'*) text "$id" "$(head -c 3000 /dev/zero | tr '\0' a)" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such thing"}}\n' "$id" ;;
    esac
done

# Its input has ended; one that is stubborn does not care.
while [ "$trouble" = stubborn ]; do sleep 1000; done
