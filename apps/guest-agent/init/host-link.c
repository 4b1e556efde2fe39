/* The host's end of the link: a virtio-serial port, a vsock port of the host, or (in tests) a Unix socket. */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORTS "/sys/class/virtio-ports"
enum { HOST_CID = 2 };

/* As in linux/vm_sockets.h, which not every C library comes with. */
struct vsock_address {
  unsigned short family, reserved;
  unsigned port, cid;
  unsigned char zero[4];
};

static bool find_port(struct link_target *target) {
  bool found = false;
  DIR *folder = opendir(PORTS);
  for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
    char path[PATH_BYTES], name[PATH_BYTES];
    if (entry->d_name[0] == '.' || strlen(entry->d_name) >= NAME_BYTES) continue;
    snprintf(path, sizeof path, PORTS "/%.63s/name", entry->d_name);
    if (read_file(path, name, sizeof name) < 0) continue;
    name[strcspn(name, "\n")] = 0;
    if (strcmp(name, target->text) != 0) continue;
    snprintf(target->text, sizeof target->text, "/dev/%.64s", entry->d_name);
    found = true;
  }
  if (folder) closedir(folder);
  return found;
}

int find_target(struct link_target *target) {
  if (target->kind == LINK_VIRTIO) {
    /* The device tells its ports after its driver is loaded. */
    long long until = now_ms() + DEVICE_WAIT_MS;
    bool found;
    while (!(found = find_port(target)) && now_ms() < until) poll(NULL, 0, 10);
    errno = ENODEV;
    return found ? 0 : -1;
  }
  int fd = socket(target->kind == LINK_VSOCK ? AF_VSOCK : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? -1 : close(fd);
}

static int dial(int family, const void *address, socklen_t bytes) {
  int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, address, bytes) == 0 || errno == EINPROGRESS) return fd;
  int saved = errno;
  close(fd);
  errno = saved;
  return -1;
}

int dial_target(const struct link_target *target) {
  if (target->kind == LINK_VIRTIO) return open(target->text, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (target->kind == LINK_VSOCK) {
    struct vsock_address address = {.family = AF_VSOCK, .port = target->port, .cid = HOST_CID};
    return dial(AF_VSOCK, &address, sizeof address);
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, target->text, strlen(target->text));
  return dial(AF_UNIX, &address, sizeof address);
}

bool target_is_away(const struct link_target *target, int fd) {
  struct pollfd port = {.fd = fd};
  return target->kind == LINK_VIRTIO && poll(&port, 1, 0) > 0 && (port.revents & POLLHUP);
}
