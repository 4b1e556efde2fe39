/* Whole small files. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VMSTAT_BYTES = 32768 };

ssize_t read_file(const char *path, char *into, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t bytes = 0;
  ssize_t got = 0;
  while (bytes < size && (got = read(fd, into + bytes, size - bytes)) > 0) bytes += got;
  int saved = errno;
  close(fd);
  errno = got < 0 ? saved : EFBIG;
  if (got < 0 || bytes == size) return -1;
  into[bytes] = 0;
  return bytes;
}

int write_file(const char *path, const char *bytes, size_t size, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return -1;
  size_t written = 0;
  ssize_t got = 0;
  while (written < size && (got = write(fd, bytes + written, size - written)) > 0) written += got;
  int saved = errno;
  close(fd);
  errno = saved;
  return written == size ? 0 : -1;
}

bool memory_ran_out(void) {
  static char text[VMSTAT_BYTES];
  const char *count = read_file("/proc/vmstat", text, sizeof text) < 0 ? NULL : strstr(text, "\noom_kill ");
  return count && strtoll(count + sizeof "\noom_kill " - 1, NULL, 10) > 0;
}
