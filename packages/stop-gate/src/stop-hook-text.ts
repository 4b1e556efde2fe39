import { CHECK_FEEDBACK_BYTES, COMMAND_FEEDBACK_BYTES } from './limits.ts';

/** Bytes that `od` prints as numbers, as the inside of a JSON string of ASCII alone: no cut character and no locale can break it. */
const JSON_ESCAPE = String.raw`
function put(c) {
  if (c == 9) printf "\\t"
  else if (c == 10) printf "\\n"
  else if (c == 34) printf "\\\""
  else if (c == 92) printf "\\\\"
  else if (c < 32 || (c > 126 && c < 160)) return
  else if (c < 127) printf "%c", c
  else if (c < 65536) printf "\\u%04x", c
  else printf "\\u%04x\\u%04x", 55296 + int((c - 65536) / 1024), 56320 + (c - 65536) % 1024
}
function begin(count, least, value) { need = count; min = least; v = value }
{
  for (i = 1; i <= NF; i++) {
    b = $i + 0
    if (need > 0 && b >= 128 && b < 192) {
      v = v * 64 + b - 128
      need--
      if (need == 0) put(v < min || v > 1114111 || (v > 55295 && v < 57344) ? 65533 : v)
      continue
    }
    if (need > 0) put(65533)
    need = 0
    if (b < 128) put(b)
    else if (b > 193 && b < 224) begin(1, 128, b - 192)
    else if (b > 223 && b < 240) begin(2, 2048, b - 224)
    else if (b > 239 && b < 245) begin(3, 65536, b - 240)
  }
}
END { if (need > 0) put(65533) }
`;

/** The Stop hook. Nothing of the task is in this text: what it enforces are files of its configuration folder. */
export const STOP_HOOK = String.raw`#!/bin/sh
# Refuses an early stop inside the agent's own loop, for quick feedback. The verdict is the host's.
config=$1
state=$2
event=$(tr -d ' \t\r\n')
case $event in
  *'"background_tasks":[{'*) exit 0 ;;
esac

# number FILE: a number from 1 to 999, or failure.
number() {
  value=$(cat "$1") || return 1
  case $value in
    [1-9] | [1-9][0-9] | [1-9][0-9][0-9]) printf '%s' "$value" ;;
    *) return 1 ;;
  esac
}

max=$(number "$config/max-blocks") && limit=$(number "$config/check-timeout") && answer=$(cat "$config/answer") || exit 3
if [ -e "$state/blocks" ]; then
  blocks=$(cat "$state/blocks")
  case $blocks in
    [0-9] | [1-9][0-9]) ;;
    *) blocks=$max ;;
  esac
else
  blocks=0
fi

note() {
  printf '{"event":"%s","blocks":%s,"reason":"%s","exit":%s}\n' "$1" "$blocks" "$2" "$3" >>"$state/log"
}

# refuse REASON EXIT: the text is in the feedback file.
refuse() {
  if [ "$blocks" -ge "$max" ]; then
    echo capped >"$state/capped" || exit 3
    note cap "$1" "$2"
    exit 0
  fi
  blocks=$((blocks + 1))
  printf '%s\n' "$blocks" >"$state/blocks" || exit 3
  note block "$1" "$2"
  if [ "$answer" = exit_2 ]; then
    echo gate
    LC_ALL=C tr -d '\000-\010\013-\037\177' <"$state/feedback" >&2
    exit 2
  fi
  text=$(od -An -v -tu1 <"$state/feedback" | LC_ALL=C awk '${JSON_ESCAPE}')
  printf '{"decision":"block","reason":"%s"}\n' "${'$'}{text:-The gate did not let this stop pass.}"
  exit 0
}

# Takes no lock and writes nothing, whatever the environment and the owner of the repository are.
look() {
  (
    unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY
    exec git --no-optional-locks -c 'safe.directory=*' "$@" 2>/dev/null
  )
}

workspace=$(cat "$config/workspace") && cd "$workspace" || exit 3

if [ -e "$config/require-change" ]; then
  if base=$(cat "$config/base" 2>/dev/null) && [ -n "$base" ] && [ "$(look rev-parse --verify -q "$base^{commit}")" = "$base" ] &&
    top=$(look rev-parse --show-cdup) && [ -z "$top" ] && head=$(look rev-parse --verify -q 'HEAD^{commit}') &&
    changes=$(look status --porcelain --untracked-files=normal --ignore-submodules=none); then
    if [ -z "$changes" ] && [ "$head" = "$base" ]; then
      printf '%s\n' 'Nothing in the working tree differs from the commit you started with, and this task needs a change. Make it now. If no change is needed, say so and explain why.' >"$state/feedback"
      refuse no_change null
    fi
  else
    printf '%s\n' 'Whether the repository was changed could not be determined: git gave no answer here. Make sure that "git status" works in the working tree, then finish again.' >"$state/feedback"
    refuse change_unknown null
  fi
fi

if [ -e "$config/check" ]; then
  started=$(date +%s)
  if timeout -k 1 1 true 2>/dev/null; then
    timeout -k 5 "$limit" /bin/sh "$config/check" >"$state/output" 2>&1 </dev/null
  else
    /bin/sh "$config/check" >"$state/output" 2>&1 </dev/null &
    check=$!
    (
      left=$limit
      while [ "$left" -gt 0 ]; do
        sleep 1 || exit
        left=$((left - 1))
      done
      kill -TERM "$check"
      sleep 5
      kill -KILL "$check"
    ) >/dev/null 2>&1 </dev/null &
    guard=$!
    wait "$check" 2>/dev/null
    code=$?
    kill "$guard" 2>/dev/null
    (exit "$code")
  fi
  code=$?
  if [ "$code" -ne 0 ]; then
    reason=check_failed
    end="exited with status $code"
    case $code in
      124 | 137 | 143)
        if [ "$(($(date +%s) - started))" -ge "$limit" ]; then
          reason=check_timed_out
          end="did not end within $limit seconds and was stopped"
        fi
        ;;
    esac
    {
      printf 'The check that decides whether this task is done %s.\n\nThe check:\n\n' "$end"
      head -c ${COMMAND_FEEDBACK_BYTES} "$config/check"
      printf '\n\nThe end of its output:\n\n'
      tail -c ${CHECK_FEEDBACK_BYTES} "$state/output"
      printf '\n\nFix the cause, then finish again.\n'
    } >"$state/feedback"
    refuse "$reason" "$code"
  fi
fi
rm -f "$state/capped"
note pass none 0
exit 0
`;
