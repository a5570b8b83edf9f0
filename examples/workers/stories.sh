#!/bin/sh
# A worker in shell, which is started for each step: the message `step` is its input, each line of its output is an act,
# and its exit code is the end (0 done, 75 suspend, anything else a failure). Run it with
# `cronhold worker --queue QUEUE --each --classes classes.json -- ./stories.sh`. It needs jq.
step=$(cat)
get() { printf '%s' "$step" | jq -c "$1"; }

case $(get .class) in
'"Sum"')
    [ "$(get '.in.ready.size')" -gt 0 ] || exit 75
    count=$(get '.in.in.items | length')
    total=$(get '(.state.total // 0) + (.in.in.items | add // 0)')
    [ "$count" -eq 0 ] || printf '{"take":{"port":"in","count":%d}}\n' "$count"
    if [ "$(get '.in.in.more')" = true ]; then
        # The message has the first items only. Another step has the next ones.
        printf '{"set":{"total":%s}}\n{"run":{"self":true}}\n' "$total"
        exit 75
    fi
    printf '{"take":{"port":"ready"}}\n{"unset":["total"]}\n{"write":{"port":"sum","data":%s}}\n' "$total"
    ;;
'"Fibonacci"')
    n=$(get '.args[0]')
    if [ "$n" -le 2 ]; then
        printf '{"write":{"port":"num","data":1}}\n'
    elif [ "$(get '.children | length')" -eq 0 ]; then
        for number in 1 2; do
            printf '{"queue":{"name":"job%d","class":"Fibonacci","args":[%d]}}\n' $number $((n - number))
        done
        exit 75
    elif [ "$(get '[.children[] | select(.status != "completed")] | length')" -gt 0 ]; then
        exit 75
    else
        printf '{"write":{"port":"num","data":%s}}\n' "$(get '[.children[].out.num.items[0]] | add')"
    fi
    ;;
*)
    echo "this worker has no class $(get .class)" >&2
    exit 1
    ;;
esac
