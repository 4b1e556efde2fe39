/* The one network device of a guest. */
#include "init.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0) fail("lo cannot be asked: %s", strerror(errno));
  request.ifr_flags |= IFF_UP;
  /* With the first rise the kernel gives it 127.0.0.1 and ::1. */
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) fail("lo cannot be raised: %s", strerror(errno));
  close(fd);
  say("up");
}
