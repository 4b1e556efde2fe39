#!/bin/sh
# A scripted agent, so that the demo needs no model: it leaves too early, is sent back, and then does its work.
set -u
echo "agent: round $FIRECREW_ROUND, my task is: $(cat "$FIRECREW_TASK_FILE")"

if [ ! -f "${FIRECREW_FEEDBACK_FILE:-/nonexistent}" ]; then
  echo "agent: I write down what I would do, and leave."
  printf '\n## To do\n\nLook at the discount.\n' >> README.md
  exit 0
fi

echo "agent: I was sent back. The check said:"
sed 's/^/  | /' "$FIRECREW_FEEDBACK_FILE" | head -n 12
echo "agent: I ask a code host for help, which nobody allowed:"
git ls-remote https://code.example.com/help.git 2>&1 | sed 's/^/  | /'
echo "agent: so I fix it myself: ten items are enough for the discount."
sed -i 's/count > 10/count >= 10/' price.js
