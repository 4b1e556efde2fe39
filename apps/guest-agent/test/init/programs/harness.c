/*
 * The parts of guest-init that decide, driven from outside a VM:
 *   harness options < LINES     for each command line its options as words, or `refused: REASON`
 *   harness run-file < FILE     the arguments, one per line, or `refused: REASON`
 *   harness superblock < BYTES  file system and label in hexadecimal
 *   harness disk NAME SERIAL LABEL   whether a disk of that serial and label is meant by `serial:S` or `label:L`
 *   harness relay LINK SOCKET   relays until it is killed; LINK as on the command line
 */
#include "init.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

long long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

/* A port takes part of a write where a Unix socket takes all, so here a write or read takes part of what it could, by chance. */
static bool cuts;
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __real_read(int fd, void *bytes, size_t size);

static size_t cut(size_t size) {
  return cuts && size > 1 && rand() % 2 ? 1 + rand() % (size - 1) : size;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
  return __real_write(fd, bytes, cut(size));
}

ssize_t __wrap_read(int fd, void *bytes, size_t size) {
  return __real_read(fd, bytes, cut(size));
}

/* All of the standard input, in memory that ends with it: a read beyond is seen by the sanitizer. */
static char *read_input(size_t *bytes) {
  char *text = malloc(1 << 20);
  *bytes = fread(text, 1, 1 << 20, stdin);
  return realloc(text, *bytes ? *bytes : 1);
}

static int refuse(const char *error) {
  printf("refused: %s\n", error);
  return 0;
}

static void print_disk(const char *role, const struct disk_name *disk) {
  printf("%s=%s:%s ", role, disk->by_label ? "label" : "serial", disk->text);
}

static int show_options(const char *text) {
  static const char *const KINDS[] = {"virtio", "vsock", "unix"};
  struct options options;
  char error[ERROR_BYTES], *line = strdup(text);
  bool accepted = parse_options(line, &options, error);
  free(line);
  if (!accepted) return refuse(error);
  print_disk("base", &options.base);
  if (options.scratch_is_tmpfs) printf("scratch=tmpfs ");
  else print_disk("scratch", &options.scratch);
  print_disk("payload", &options.payload);
  if (options.has_layer) print_disk("layer", &options.layer);
  printf("link=%s:%s:%u rescue=%d\n", KINDS[options.link.kind], options.link.text, options.link.port, options.rescue);
  return 0;
}

static int show_all_options(void) {
  static char line[100000];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    show_options(line);
  }
  return 0;
}

static int show_run_file(void) {
  char *argv[MAX_ARGS + 1], error[ERROR_BYTES];
  size_t bytes;
  char *text = read_input(&bytes);
  if (!parse_run_file(text, bytes, argv, 2, error)) return refuse(error);
  for (int at = 0; argv[at]; at++) puts(argv[at]);
  return 0;
}

static int show_superblock(void) {
  size_t bytes;
  char *text = read_input(&bytes);
  if (bytes != SUPERBLOCK_BYTES) return 3;
  struct superblock found = read_superblock((unsigned char *)text);
  printf("%s ", filesystem_name(found.filesystem));
  for (const char *at = found.label; *at; at++) printf("%02x", (unsigned char)*at);
  puts("");
  return 0;
}

static int show_match(const char *name, const char *serial, const char *label) {
  struct disk_name disk = {.by_label = strncmp(name, "label:", 6) == 0};
  struct superblock superblock = {FS_EXT4, ""};
  snprintf(disk.text, sizeof disk.text, "%s", strchr(name, ':') + 1);
  snprintf(superblock.label, sizeof superblock.label, "%s", label);
  puts(disk_matches(&disk, serial, &superblock) ? "yes" : "no");
  return 0;
}

static int run_relay(const char *link, const char *path) {
  static struct relay relay;
  struct options options;
  char line[CMDLINE_BYTES], error[ERROR_BYTES];
  snprintf(line, sizeof line, "firecrew.base=serial:b firecrew.payload=serial:p firecrew.scratch=tmpfs firecrew.link=%s", link);
  if (!parse_options(line, &options, error)) return refuse(error);
  if (find_target(&options.link) != 0) return 4;
  int listener = listen_on(path);
  if (listener < 0) return 5;
  relay_start(&relay, &options.link, listener);
  cuts = true;
  signal(SIGPIPE, SIG_IGN); /* As pid 1 does. */
  puts("listening");
  fflush(stdout);
  for (unsigned long long turns = 0;; turns++) {
    struct pollfd fds[RELAY_FDS];
    int wait = relay_wants(&relay, fds, now_ms());
    if (poll(fds, RELAY_FDS, wait) < 0) return 6;
    relay_step(&relay, fds, now_ms());
    /* A relay that wakes for nothing would take the one processor of a guest. */
    if (turns % 1000 == 999) {
      printf("turns %llu\n", turns + 1);
      fflush(stdout);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "options") == 0) return show_all_options();
  if (argc == 2 && strcmp(argv[1], "run-file") == 0) return show_run_file();
  if (argc == 2 && strcmp(argv[1], "superblock") == 0) return show_superblock();
  if (argc == 5 && strcmp(argv[1], "disk") == 0) return show_match(argv[2], argv[3], argv[4]);
  if (argc == 4 && strcmp(argv[1], "relay") == 0) return run_relay(argv[2], argv[3]);
  return 2;
}
