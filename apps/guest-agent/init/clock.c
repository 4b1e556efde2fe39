/* The clock: the guest agent has no call that sets it, so it runs this program once more, as `init add-to-clock MS`. */
#include "init.h"

#include <stdlib.h>
#include <time.h>

/* About 3,000 years. */
static const long long MAX_STEP_MS = 100000000000000;

/* Gives the status of the program: 2 for what is no number of ms, 1 where the kernel refuses. A step, and no time, so that it may come late. */
int add_to_clock(const char *text) {
  char *end;
  struct timespec now;
  long long add = strtoll(text, &end, 10);
  if (end == text || *end || add < -MAX_STEP_MS || add > MAX_STEP_MS) return 2;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 1;
  long long ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000 + add;
  if (ms < 0) return 2;
  now.tv_sec = ms / 1000;
  now.tv_nsec = ms % 1000 * 1000000;
  return clock_settime(CLOCK_REALTIME, &now) == 0 ? 0 : 1;
}
