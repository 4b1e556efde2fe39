/*
 * guest-init: pid 1 of a microVM. It makes the machine ready, starts the guest agent and carries the bytes of its link, until the
 * agent ends; then it resets the machine, which is the one end that both VMMs report.
 *
 * Who dials whom: guest-init LISTENS on a Unix socket, the guest agent dials it as it dials the socket of the process driver, and
 * each connection becomes one dial to the host. So the agent has one code path, and its back-off is the back-off of the link.
 */
#ifndef FIRECREW_INIT_H
#define FIRECREW_INIT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where things are, in the initrd and in the root that the guest sees. */
#define MODULE_LIST "/modules/list"
#define CONFIG_IN_INITRD "/firecrew/agent.json"
#define PAYLOAD_FOLDER "/opt/firecrew"
#define RUN_FILE PAYLOAD_FOLDER "/run"
#define PRIVATE_FOLDER "/run/firecrew"
#define LINK_SOCKET PRIVATE_FOLDER "/link.sock"
#define AGENT_CONFIG PRIVATE_FOLDER "/agent.json"

/* Every buffer has one of these sizes, in bytes (NUL included where it is text), or holds that many entries. */
enum {
  ERROR_BYTES = 512,
  LINE_BYTES = 512,
  CMDLINE_BYTES = 4096,
  SERIAL_BYTES = 21,
  LABEL_BYTES = 17,
  TARGET_BYTES = 108,
  NAME_BYTES = 64,
  PATH_BYTES = 256,
  SUPERBLOCK_BYTES = 2048,
  LIST_BYTES = 16384,
  MAX_MODULES = 64,
  MAX_DISKS = 64,
  CONFIG_BYTES = 1048576,
  RUN_BYTES = 8192,
  MAX_ARGS = 64,
  LANE_BYTES = 65536,
};

/* Time limits, in ms. */
enum { DEVICE_WAIT_MS = 2000, AWAY_POLL_MS = 50, LAST_BYTES_MS = 2000, STOP_MS = 5000 };

/* options.c: what the kernel command line says. */
struct disk_name {
  bool by_label;
  char text[SERIAL_BYTES];
};
enum link_kind { LINK_VIRTIO, LINK_VSOCK, LINK_UNIX };
struct link_target {
  enum link_kind kind;
  /* Name of the port, or path of the socket; once it is found, the device of the port. */
  char text[TARGET_BYTES];
  unsigned port;
};
struct options {
  struct disk_name base, scratch, payload, layer;
  bool scratch_is_tmpfs, has_layer, rescue;
  struct link_target link;
};
/* Reads the `firecrew.KEY=VALUE` words of `line`. False with a reason in `error` for anything that is not in the table of README.md. */
bool parse_options(const char *line, struct options *options, char error[ERROR_BYTES]);

/* run-file.c: how the agent is started. Splits `text` in place, one argument per line; `argv` ends with room for `spare` more. */
bool parse_run_file(char *text, size_t bytes, char *argv[MAX_ARGS + 1], int spare, char error[ERROR_BYTES]);

/* superblock.c: what is on a disk. */
enum filesystem { FS_UNKNOWN, FS_SQUASHFS, FS_EROFS, FS_EXT4 };
struct superblock {
  enum filesystem filesystem;
  char label[LABEL_BYTES];
};
struct superblock read_superblock(const unsigned char bytes[SUPERBLOCK_BYTES]);
const char *filesystem_name(enum filesystem filesystem);
bool disk_matches(const struct disk_name *name, const char *serial, const struct superblock *superblock);

/* disks.c: the one disk of that name. Ends the VM when there is none, or more than one. */
struct disk {
  char device[PATH_BYTES];
  enum filesystem filesystem;
};
struct disk find_disk(const char *role, const struct disk_name *name);

/* modules.c */
void load_modules(void);

/* mounts.c */
void mount_kernel_filesystems(void);
/* `scratch` is NULL for memory, `layer` for none. */
void enter_root(const struct disk *base, const struct disk *scratch, const struct disk *layer, bool rescue);
void mount_payload(const struct disk *payload);
/* Leaves the scratch disk as a clean file system. Nothing may run any more that has a file open for writing. */
void seal_scratch(void);

/* files.c: whole small files. -1 with errno (EFBIG where it holds more than `size - 1` bytes); the text ends with NUL. */
ssize_t read_file(const char *path, char *into, size_t size);
int write_file(const char *path, const char *bytes, size_t size, mode_t mode);
/* Whether the kernel has killed a process for want of memory since it started. */
bool memory_ran_out(void);

/* host-link.c: the host's end. All give -1 with errno. */
int find_target(struct link_target *target);
int dial_target(const struct link_target *target);
bool target_is_away(const struct link_target *target, int fd);

/* relay.c: bytes between the agent's connection and the host, unchanged. */
struct side {
  int fd;
  /* Nothing more comes from it; nothing more can be written to it. */
  bool ended, deaf;
  /* What waits to be written to it. */
  size_t start, end;
  unsigned char bytes[LANE_BYTES];
};
struct relay {
  const struct link_target *target;
  int listener;
  bool away;
  /* When the session is cut off after one side has ended, in ms since boot; 0 while both are there. */
  long long closes_at;
  struct side agent, host;
};
enum { RELAY_FDS = 3 };
void relay_start(struct relay *relay, const struct link_target *target, int listener);
/* Fills `fds`; gives the time to wait in ms, -1 for any. */
int relay_wants(const struct relay *relay, struct pollfd fds[RELAY_FDS], long long now_ms);
void relay_step(struct relay *relay, const struct pollfd fds[RELAY_FDS], long long now_ms);
bool relay_is_idle(const struct relay *relay);
int listen_on(const char *path);

/* console.c: one line per event, `firecrew-init: <ms since boot> ms <text>`. */
long long now_ms(void);
void stage(const char *name);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void write_line(const char *prefix, const char *text, size_t bytes);
/* Says that the present stage failed, and ends the VM. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void end_vm(void) __attribute__((noreturn));

/* agent.c: the guest agent and what it writes to its standard output. */
struct agent {
  pid_t pid;
  int output;
  long long started_at;
  size_t line_bytes;
  bool line_is_cut;
  char line[LINE_BYTES];
};
void take_agent_config(void);
void store_agent_config(void);
void start_agent(struct agent *agent);
void copy_agent_output(struct agent *agent);

/* loopback.c */
void raise_loopback(void);

/* clock.c */
int add_to_clock(const char *text);

#endif
