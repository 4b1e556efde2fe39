/* Disks by serial or label: their letters depend on the bus and on the order of the host's options. */
#include "init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool probe(const char *device, struct superblock *superblock) {
  unsigned char bytes[SUPERBLOCK_BYTES];
  int fd = open(device, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool whole = pread(fd, bytes, sizeof bytes, 0) == sizeof bytes;
  close(fd);
  if (whole) *superblock = read_superblock(bytes);
  return whole;
}

/* Gives how many match; the first is in `disk`, all names are in `seen`. */
static int scan(const struct disk_name *name, struct disk *disk, char *seen, size_t seen_bytes) {
  int matches = 0;
  DIR *folder = opendir("/sys/block");
  if (!folder) fail("/sys/block cannot be listed: %s", strerror(errno));
  *seen = 0;
  for (int entries = 0; entries < MAX_DISKS + 2; entries++) {
    struct dirent *entry = readdir(folder);
    if (!entry) break;
    if (entry->d_name[0] == '.' || strlen(entry->d_name) >= NAME_BYTES) continue;
    char path[PATH_BYTES], serial[SERIAL_BYTES + 1] = "";
    struct superblock superblock = {FS_UNKNOWN, ""};
    snprintf(path, sizeof path, "/sys/block/%.63s/serial", entry->d_name);
    if (read_file(path, serial, sizeof serial) < 0) *serial = 0;
    serial[strcspn(serial, "\n")] = 0;
    snprintf(path, sizeof path, "/dev/%.63s", entry->d_name);
    bool readable = probe(path, &superblock);
    size_t used = strlen(seen);
    snprintf(seen + used, seen_bytes - used, " %.16s(%s,%s,%s)", entry->d_name, *serial ? serial : "-",
             readable ? filesystem_name(superblock.filesystem) : "unreadable", *superblock.label ? superblock.label : "-");
    if (!disk_matches(name, serial, &superblock) || ++matches > 1) continue;
    strcpy(disk->device, path);
    disk->filesystem = superblock.filesystem;
  }
  closedir(folder);
  return matches;
}

struct disk find_disk(const char *role, const struct disk_name *name) {
  struct disk disk = {"", FS_UNKNOWN};
  char seen[LINE_BYTES / 2];
  const char *kind = name->by_label ? "label" : "serial";
  long long until = now_ms() + DEVICE_WAIT_MS;
  int matches;
  while ((matches = scan(name, &disk, seen, sizeof seen)) == 0 && now_ms() < until) poll(NULL, 0, 10);
  if (matches == 0) fail("%s: no disk has the %s %s; there are:%s", role, kind, name->text, *seen ? seen : " none");
  if (matches > 1) fail("%s: %d disks have the %s %s:%s", role, matches, kind, name->text, seen);
  say("%s is %s (%s %s, %s)", role, disk.device, kind, name->text, filesystem_name(disk.filesystem));
  return disk;
}
