/* The payload's word on how the guest agent is started. */
#include "init.h"

#include <stdio.h>
#include <string.h>

static bool refuse(char *error, const char *why) {
  snprintf(error, ERROR_BYTES, "%s %s", RUN_FILE, why);
  return false;
}

bool parse_run_file(char *text, size_t bytes, char *argv[MAX_ARGS + 1], int spare, char error[ERROR_BYTES]) {
  if (bytes == 0) return refuse(error, "is empty");
  if (text[bytes - 1] != '\n') return refuse(error, "does not end with a line end");
  int count = 0;
  for (size_t start = 0, at = 0; at < bytes; at++) {
    unsigned char byte = (unsigned char)text[at];
    if (byte != '\n') {
      if (byte < 0x20 || byte == 0x7f) return refuse(error, "holds a control character");
      continue;
    }
    if (at == start) return refuse(error, "holds an empty line");
    if (count == MAX_ARGS - spare) return refuse(error, "has too many lines");
    text[at] = 0;
    argv[count++] = text + start;
    start = at + 1;
  }
  if (argv[0][0] != '/') return refuse(error, "begins with no absolute path");
  argv[count] = NULL;
  return true;
}
