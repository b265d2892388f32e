#!/usr/bin/env bash
# Uses `holdfast serve` from a shell, with curl. Programs for JSON, such as jq, make this shorter.
#
# HOLDFAST_URL is the address of the server. HOLDFAST_TOKEN is a token with the role app, and
# HOLDFAST_VIEWER one with the role viewer; `holdfast serve token add` makes them.
set -euo pipefail
url=${HOLDFAST_URL:-http://127.0.0.1:7360}

# The field with a token, for `curl -H @file`: every user of the machine could see an argument.
authorization() { # TOKEN
  echo "Authorization: Bearer $1"
}

# Prints the content of an answer. Repeats a request while the server asks for that, which is safe:
# an event has an id, ids leave a gap, and an unsettled claim ends with its lease.
call() { # METHOD PATH [options of curl]
  local answer
  if ! answer=$(curl -sS --fail-with-body --retry 4 -m 60 -X "$1" \
    -H @<(authorization "$HOLDFAST_TOKEN") -H 'Content-Type: application/json' \
    "$url$2" "${@:3}"); then
    echo "$1 $2: $answer" >&2
    return 1
  fi
  echo "$answer"
}

# Prints the first text or number with this name in the JSON of the input.
member() { # NAME
  local json
  json=$(cat)
  if [[ $json =~ \"$1\":(\"([^\"]*)\"|([0-9.]+)) ]]; then
    echo "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
  fi
}

# A key is made from the arguments of a call, the same in every language.
arguments='[{"t":"str","v":"FR"}]'
key=$(call POST '/v1/keys?scheme=failover' -d '{"name":"country","args":'"$arguments"'}' |
  member raw_key)
echo "key: $key"

# An answer is kept under its name and key for an hour. The payload may be any bytes.
entry=/v1/stores/main/country/$key
call PUT "$entry" -H 'Cache-Control: max-age=3600' -d '{"capital":"Paris"}' >/dev/null
capital=$(call GET "$entry" | member capital)
echo "stored: $capital"

# A point does both: it makes the key, keeps what the upstream answers, and has the last good
# answer when the upstream fails.
ask_capital() { # COMMAND that asks the upstream
  local answer as_of=now
  if answer=$("$@"); then
    call POST /v1/points/capital/answers -d '{"args":'"$arguments"',"payload":'"$answer"'}' \
      >/dev/null
  else
    answer=$(call POST /v1/points/capital/recover -d '{"args":'"$arguments"',"cause":"failed"}')
    as_of=$(member asOf <<<"$answer")
  fi
  echo "$(member capital <<<"$answer") $as_of"
}
capital=$(ask_capital echo '{"capital":"Paris"}')
echo "upstream works: $capital"
capital=$(ask_capital false)
echo "upstream fails: $capital"

# Ids are unique across all processes.
answer=$(call POST /v1/sequences/order.id/next -d '{"count":3}')
ids=${answer#*'"ids":["'}
ids=${ids%%'"]'*}
echo "ids: ${ids//'","'/ }"

# With an id or an Idempotency-Key, an event is published once, however often it is sent.
for _ in 1 2; do
  status=$(call POST /v1/outboxes/main/events -H 'Idempotency-Key: payment-4711' \
    -d '{"type":"order.paid","key":"order-7","payload":{"euro":30}}' | member status)
  echo "published: $status"
done

# A worker repeats this. `wait` lets the request wait until there is an event.
claim=$(call POST /v1/outboxes/main/claims -d '{"lane":0,"most":1,"lease":"30s","wait":"20s"}')
id=$(member id <<<"$claim")
if [[ -n $id ]]; then
  fence=$(member fence <<<"$claim")
  order=$(member key <<<"$claim")
  echo "claimed: $(member type <<<"$claim") $order $(member euro <<<"$claim")"
  result=$(call POST /v1/outboxes/main/settlements -d '{"lane":0,"fence":"'"$fence"'",
    "events":[{"id":"'"$id"'","key":"'"$order"'","outcome":"done"}]}' | member result)
  echo "settled: $result"
fi

# The events of the server. The state is sampled once a second: wait until it has the point.
while read -r field value; do
  [[ $field == data: && $value == *'{"name":"capital"'* ]] || continue
  echo "breaker: $(member breaker <<<"${value#*'{"name":"capital"'}")"
  break
done < <(exec curl -sSN --fail-with-body -H @<(authorization "$HOLDFAST_VIEWER") "$url/v1/events")
kill $!
