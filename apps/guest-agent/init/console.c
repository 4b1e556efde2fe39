/* What the console gets, and the end of the VM. */
#include "init.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char *current_stage = "start";

long long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

void stage(const char *name) {
  current_stage = name;
}

/* One line in one write. Names of disks and modules come from outside: nothing in a line may act on a terminal. */
void write_line(const char *prefix, const char *text, size_t bytes) {
  char line[LINE_BYTES * 2];
  int length = snprintf(line, sizeof line - 1, "%s%.*s", prefix, (int)bytes, text);
  if (length > (int)sizeof line - 2) length = sizeof line - 2;
  for (int at = 0; at < length; at++) {
    if (line[at] < 0x20 || line[at] > 0x7e) line[at] = '?';
  }
  line[length] = '\n';
  if (write(STDOUT_FILENO, line, length + 1) < 0) return; /* There is no one left to tell. */
}

static void write_event(const char *kind, const char *format, va_list args) {
  char prefix[NAME_BYTES * 2], text[LINE_BYTES];
  int length = vsnprintf(text, sizeof text, format, args);
  snprintf(prefix, sizeof prefix, "firecrew-init: %lld ms %s%s%s ", now_ms(), kind, current_stage, *kind ? ":" : "");
  write_line(prefix, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  write_event("", format, args);
  va_end(args);
}

void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  write_event("failed ", format, args);
  va_end(args);
  end_vm();
}

void end_vm(void) {
  kill(-1, SIGKILL);
  /* Enough for the scratch disk: its journal is replayed when it is mounted again. */
  sync();
  tcdrain(STDOUT_FILENO);
  reboot(RB_AUTOBOOT);
  /* Only a kernel without the right to reset comes here; the end of pid 1 is a panic, which resets it too. */
  _exit(1);
}
