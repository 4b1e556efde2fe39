/* Kernel modules, in the order of the list; each leaves the initrd once it is loaded. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* False for a module that is skipped: lists are made for several machines, so a file or a device may be missing. What needs it fails
   later, by its name. */
static bool load(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return false;
  if (fd < 0) fail("%s cannot be opened: %s", path, strerror(errno));
  bool loaded = syscall(SYS_finit_module, fd, "", 0) == 0 || errno == EEXIST;
  /* The kernel says "no such file" of a symbol that no module before has. */
  if (!loaded && errno != ENODEV) fail("%s cannot be loaded: %s", path, errno == ENOENT ? "a module that it needs is not loaded" : strerror(errno));
  close(fd);
  unlink(path);
  return loaded;
}

void load_modules(void) {
  static char list[LIST_BYTES];
  char skipped[LINE_BYTES / 2] = "";
  int loaded = 0, lines = 0;
  ssize_t bytes = read_file(MODULE_LIST, list, sizeof list);
  if (bytes < 0 && errno == ENOENT) return say("no list, nothing to load");
  if (bytes < 0) fail("%s cannot be read: %s", MODULE_LIST, strerror(errno));
  for (char *rest = list, *line; (line = strsep(&rest, "\n"));) {
    if (!*line) continue;
    if (++lines > MAX_MODULES) fail("%s has more than %d lines", MODULE_LIST, MAX_MODULES);
    if (*line != '/' || strlen(line) >= PATH_BYTES) fail("%s holds another line than a path: %.100s", MODULE_LIST, line);
    size_t used = strlen(skipped);
    if (load(line)) loaded++;
    else snprintf(skipped + used, sizeof skipped - used, " %s", strrchr(line, '/') + 1);
  }
  unlink(MODULE_LIST);
  say("%d loaded%s%s", loaded, *skipped ? ", skipped:" : "", skipped);
}
