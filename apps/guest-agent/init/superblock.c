/* What a disk says about itself. A scratch disk comes from a guest, so the bytes may be anything. */
#include "init.h"

#include <string.h>

/* All three keep their superblock at 1,024 bytes, or (squashfs) at 0. */
enum { OFFSET = 1024, EXT4_MAGIC = 56, EXT4_LABEL = 120, EROFS_LABEL = 64 };
static const unsigned char EROFS_MAGIC[] = {0xe2, 0xe1, 0xf5, 0xe0};

struct superblock read_superblock(const unsigned char bytes[SUPERBLOCK_BYTES]) {
  struct superblock found = {FS_UNKNOWN, ""};
  const unsigned char *at = bytes + OFFSET;
  if (memcmp(bytes, "hsqs", 4) == 0) {
    found.filesystem = FS_SQUASHFS;
  } else if (memcmp(at, EROFS_MAGIC, sizeof EROFS_MAGIC) == 0) {
    found.filesystem = FS_EROFS;
    memcpy(found.label, at + EROFS_LABEL, LABEL_BYTES - 1);
  } else if (at[EXT4_MAGIC] == 0x53 && at[EXT4_MAGIC + 1] == 0xef) {
    found.filesystem = FS_EXT4;
    memcpy(found.label, at + EXT4_LABEL, LABEL_BYTES - 1);
  }
  return found;
}

const char *filesystem_name(enum filesystem filesystem) {
  static const char *const NAMES[] = {"unknown", "squashfs", "erofs", "ext4"};
  return NAMES[filesystem];
}

bool disk_matches(const struct disk_name *name, const char *serial, const struct superblock *superblock) {
  const char *has = name->by_label ? superblock->label : serial;
  return *has && strcmp(name->text, has) == 0;
}
