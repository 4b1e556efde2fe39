/*
 * Stands in for the guest agent in a booted VM: dials the link and does what the host says, one line per order, each answered with
 * `<bytes>\n` and that many bytes. It dials again when the link is lost, and ends by `exit STATUS`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char config[4096];

/* What comes from the host, and what goes to it. */
static FILE *orders, *answers;
static int dials;

static void dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/firecrew/link.sock"};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) exit(21);
  dials++;
  orders = fdopen(fd, "r");
  answers = fdopen(dup(fd), "w");
}

static void redial(void) {
  fclose(orders);
  fclose(answers);
  dial();
}

static void answer(const char *bytes, size_t size) {
  fprintf(answers, "%zu\n", size);
  fwrite(bytes, 1, size, answers);
  fflush(answers);
}

static void answer_text(const char *text) {
  answer(text, strlen(text));
}

static void answer_file(const char *path) {
  static char bytes[65536];
  int fd = open(path, O_RDONLY);
  ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
  if (size < 0) snprintf(bytes, sizeof bytes, "error: %s", strerror(errno));
  answer(bytes, size < 0 ? strlen(bytes) : (size_t)size);
  if (fd >= 0) close(fd);
}

static void answer_number(int number) {
  char text[20];
  snprintf(text, sizeof text, "%d", number);
  answer_text(text);
}

/* `ok`, or why not. */
static void answer_result(int result) {
  char text[200] = "ok";
  if (result < 0) snprintf(text, sizeof text, "error: %s", strerror(errno));
  answer_text(text);
}

static int write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return -1;
  int result = write(fd, text, strlen(text));
  fsync(fd);
  close(fd);
  return result;
}

/* Bytes there and back over 127.0.0.1. */
static int use_loopback(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0) return -1;
  getsockname(listener, (struct sockaddr *)&address, &size);
  return connect(client, (struct sockaddr *)&address, size);
}

/* Leaves a grandchild behind, which pid 1 inherits. */
static int leave_orphan(void) {
  pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) usleep(20000);
    _exit(0);
  }
  return waitpid(child, NULL, 0);
}

/* Processes that ended and that nobody has taken. */
static int count_zombies(void) {
  int zombies = 0;
  DIR *folder = opendir("/proc");
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[300], text[200] = "";
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    int fd = open(path, O_RDONLY);
    if (fd < 0) continue;
    if (read(fd, text, sizeof text - 1) > 0 && strstr(text, ") Z ")) zombies++;
    close(fd);
  }
  closedir(folder);
  return zombies;
}

static void echo(size_t size) {
  static char bytes[65536];
  fprintf(answers, "%zu\n", size);
  fflush(answers);
  for (size_t left = size; left > 0;) {
    size_t got = fread(bytes, 1, left < sizeof bytes ? left : sizeof bytes, orders);
    if (got == 0) exit(22);
    fwrite(bytes, 1, got, answers);
    fflush(answers);
    left -= got;
  }
}

static void describe(int argc, char **argv) {
  char text[1000];
  struct rlimit files;
  struct stat socket, folder;
  getrlimit(RLIMIT_NOFILE, &files);
  stat("/run/firecrew/link.sock", &socket);
  stat("/run/firecrew", &folder);
  int length = snprintf(text, sizeof text, "pid %d parent %d files %ld/%ld socket %o folder %o argv", getpid(), getppid(), (long)files.rlim_cur,
                        (long)files.rlim_max, socket.st_mode, folder.st_mode);
  for (int at = 0; at < argc; at++) length += snprintf(text + length, sizeof text - length, " %s", argv[at]);
  answer_text(text);
}

int main(int argc, char **argv) {
  if (argc < 3) return 20;
  int fd = open(argv[argc - 1], O_RDONLY);
  if (fd < 0 || read(fd, config, sizeof config - 1) < 0 || unlink(argv[argc - 1]) != 0) return 23;
  if (argc == 3) return 27;
  printf("the agent of the test is up\n");
  fflush(stdout);
  dial();
  char line[2000];
  for (;;) {
    if (!fgets(line, sizeof line, orders)) {
      /* The host was lost. */
      redial();
      continue;
    }
    line[strcspn(line, "\n")] = 0;
    char *order = strtok(line, " "), *first = strtok(NULL, " "), *rest = strtok(NULL, "");
    if (strcmp(order, "describe") == 0) describe(argc, argv);
    else if (strcmp(order, "dials") == 0) answer_number(dials);
    else if (strcmp(order, "config") == 0) answer_text(config);
    else if (strcmp(order, "read") == 0) answer_file(first);
    else if (strcmp(order, "write") == 0) answer_result(write_text(first, rest));
    else if (strcmp(order, "remove") == 0) answer_result(unlink(first));
    else if (strcmp(order, "loopback") == 0) answer_result(use_loopback());
    else if (strcmp(order, "orphan") == 0) answer_result(leave_orphan());
    else if (strcmp(order, "zombies") == 0) answer_number(count_zombies());
    else if (strcmp(order, "signal") == 0) answer_result(kill(atoi(first), atoi(rest)));
    else if (strcmp(order, "echo") == 0) echo(strtoul(first, NULL, 10));
    else if (strcmp(order, "say") == 0) answer_result(printf("%s\n", rest) + fflush(stdout));
    else if (strcmp(order, "redial") == 0) {
      redial();
      answer_text("dialled again");
    } else if (strcmp(order, "exit") == 0) {
      answer_text("bye");
      return atoi(first);
    } else return 24;
  }
}
