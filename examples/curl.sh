#!/usr/bin/env bash
# The same question on the three wires. Any model can be named on any of them.
#   TRIWIRE_KEY=sk-tri-… examples/curl.sh [model]
set -euo pipefail
url=${TRIWIRE_URL:-http://127.0.0.1:8080}
key=${TRIWIRE_KEY:?set it to a key of an account; the server prints one at its first start}
model=${1:-sim-messages}
question="Why is the sky blue?"

echo "messages:"
curl -sS "$url/v1/messages" -H "x-api-key: $key" -H 'content-type: application/json' -d '{
  "model": "'"$model"'", "max_tokens": 200,
  "messages": [{ "role": "user", "content": "'"$question"'" }]
}'

printf '\n\nchat:\n'
curl -sS "$url/v1/chat/completions" -H "authorization: Bearer $key" -H 'content-type: application/json' -d '{
  "model": "'"$model"'", "max_completion_tokens": 200,
  "messages": [{ "role": "user", "content": "'"$question"'" }]
}'

printf '\n\nresponses, streamed:\n'
curl -sSN "$url/v1/responses" -H "authorization: Bearer $key" -H 'content-type: application/json' -d '{
  "model": "'"$model"'", "max_output_tokens": 200, "stream": true,
  "input": "'"$question"'"
}'
