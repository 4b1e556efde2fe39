/* File systems: the kernel's, the root (a writable layer over the read-only base), and the payload. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The writable scratch disk: the root that lies over it hides its place. */
static int scratch_folder = -1;

static void make_folder(const char *path, mode_t mode) {
  if (mkdir(path, mode) != 0 && errno != EEXIST) fail("%s cannot be made: %s", path, strerror(errno));
}

static void mount_on(const char *what, const char *where, const char *type, unsigned long flags, const char *options) {
  make_folder(where, 0755);
  if (mount(what, where, type, flags, options) != 0) fail("%s (%s) cannot be mounted on %s: %s", what, type, where, strerror(errno));
}

void mount_kernel_filesystems(void) {
  mount_on("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  mount_on("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  mount_on("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
}

/* Names that shells and scripts write to; devtmpfs has devices alone. */
static void link_descriptors(void) {
  static const char *const links[][2] = {
      {"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"}};
  for (size_t at = 0; at < sizeof links / sizeof *links; at++) {
    if (symlink(links[at][0], links[at][1]) != 0 && errno != EEXIST) fail("%s cannot be made: %s", links[at][1], strerror(errno));
  }
}

/* The rest of what programs expect, in the root that they see. */
static void mount_guest_filesystems(void) {
  mount_kernel_filesystems();
  link_descriptors();
  mount_on("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  mount_on("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666");
  mount_on("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_on("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
  mount_on("firecrew", PRIVATE_FOLDER, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700");
  make_folder("/tmp", 01777);
  if (chmod("/tmp", 01777) != 0) fail("/tmp cannot be opened to all: %s", strerror(errno));
}

static void mount_disk(const struct disk *disk, const char *where, unsigned long flags) {
  if (disk->filesystem == FS_UNKNOWN) fail("%s holds no file system that is known here", disk->device);
  mount_on(disk->device, where, filesystem_name(disk->filesystem), flags, "");
}

static void mount_scratch(const struct disk *scratch, bool rescue) {
  if (scratch && scratch->filesystem != FS_EXT4) fail("the scratch disk %s holds no ext4", scratch->device);
  /* Writable in a rescue too, for as long as it takes to replay the journal that the dead VM left. */
  if (scratch) mount_disk(scratch, "/scratch", MS_NOATIME);
  if (scratch && rescue && mount(NULL, "/scratch", NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) {
    fail("%s cannot be made read-only: %s", scratch->device, strerror(errno));
  }
  const char *layer = scratch && !rescue ? "/scratch" : "/memory";
  if (strcmp(layer, "/memory") == 0) mount_on("memory", layer, "tmpfs", MS_NOATIME, "mode=0700");
  if (chdir(layer) != 0) fail("%s cannot be entered: %s", layer, strerror(errno));
  if (scratch && !rescue) scratch_folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  make_folder("upper", 0755);
  make_folder("work", 0755);
}

/* What the scratch disk of an earlier guest holds, below this one's own. */
static void mount_layer(const struct disk *layer) {
  struct stat upper;
  if (layer->filesystem != FS_EXT4) fail("the layer %s holds no ext4", layer->device);
  mount_disk(layer, "/layer", MS_RDONLY | MS_NOATIME);
  /* A guest wrote it: a link in that place would lead anywhere. */
  if (lstat("/layer/upper", &upper) != 0 || !S_ISDIR(upper.st_mode)) fail("the layer %s holds no tree", layer->device);
}

void enter_root(const struct disk *base, const struct disk *scratch, const struct disk *layer, bool rescue) {
  stage("base");
  mount_disk(base, "/base", MS_RDONLY | MS_NOATIME);
  stage("layer");
  if (layer) mount_layer(layer);
  stage("scratch");
  mount_scratch(scratch, rescue);
  stage("root");
  char layers[LINE_BYTES];
  snprintf(layers, sizeof layers, "lowerdir=%s%s/base,upperdir=upper,workdir=work", rescue ? "/scratch/upper:" : "", layer ? "/layer/upper:" : "");
  mount_on("overlay", "/root", "overlay", MS_NOATIME, layers);
  /* They are mounted anew inside: a link of a hostile scratch in the place of one of them then leads within the guest's own root. */
  const char *const outside[] = {"/dev", "/sys", "/proc"};
  for (size_t at = 0; at < sizeof outside / sizeof *outside; at++) umount2(outside[at], MNT_DETACH);
  unlink("/init");
  if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0) {
    fail("the root cannot be entered: %s", strerror(errno));
  }
  mount_guest_filesystems();
  say("%s over the base%s%s", scratch && !rescue ? "scratch disk" : "memory", layer ? " and the layer" : "",
      rescue ? " and the scratch disk to rescue" : "");
}

void mount_payload(const struct disk *payload) {
  make_folder("/opt", 0755);
  mount_disk(payload, PAYLOAD_FOLDER, MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME);
  say("on %s", PAYLOAD_FOLDER);
}

void seal_scratch(void) {
  if (scratch_folder < 0) return;
  if (fchdir(scratch_folder) != 0 || mount(NULL, ".", NULL, MS_REMOUNT | MS_RDONLY | MS_NOATIME, NULL) != 0) {
    say("left with its journal: %s", strerror(errno));
  } else {
    say("sealed");
  }
}
