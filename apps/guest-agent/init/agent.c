/* The guest agent: its configuration, its start, and its standard output as lines of the console. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What systemd gives a service; the kernel's own hard limit for pid 1 is 4,096, too few for builds and watchers. */
enum { SOFT_FILES = 1024, HARD_FILES = 524288 };

/* The configuration holds the secret of the link: it goes from the initrd's memory to a file that the agent removes. */
static char config[CONFIG_BYTES + 1];
static size_t config_bytes;

void take_agent_config(void) {
  ssize_t bytes = read_file(CONFIG_IN_INITRD, config, sizeof config);
  if (bytes < 0) fail("%s cannot be read: %s", CONFIG_IN_INITRD, strerror(errno));
  if (unlink(CONFIG_IN_INITRD) != 0) fail("%s cannot be removed: %s", CONFIG_IN_INITRD, strerror(errno));
  config_bytes = bytes;
}

void store_agent_config(void) {
  if (write_file(AGENT_CONFIG, config, config_bytes, 0600) != 0) fail("%s cannot be written: %s", AGENT_CONFIG, strerror(errno));
  explicit_bzero(config, sizeof config);
}

static void run_agent(char *const argv[], int output) {
  static char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", NULL};
  struct rlimit files = {SOFT_FILES, HARD_FILES};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  setrlimit(RLIMIT_NOFILE, &files);
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2) execve(argv[0], argv, environment);
}

void start_agent(struct agent *agent) {
  static char text[RUN_BYTES];
  static char option[] = "--config-file", path[] = AGENT_CONFIG;
  char *argv[MAX_ARGS + 1], error[ERROR_BYTES];
  ssize_t bytes = read_file(RUN_FILE, text, sizeof text);
  if (bytes < 0) fail("%s cannot be read: %s", RUN_FILE, strerror(errno));
  if (!parse_run_file(text, bytes, argv, 2, error)) fail("%s", error);
  int count = 0, output[2], failed[2], why = 0;
  while (argv[count]) count++;
  argv[count] = option;
  argv[count + 1] = path;
  argv[count + 2] = NULL;
  if (pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(failed, O_CLOEXEC) != 0) fail("no pipe: %s", strerror(errno));
  fcntl(output[1], F_SETFL, 0); /* The agent's end blocks, as its programs expect. */
  agent->started_at = now_ms();
  agent->pid = fork();
  if (agent->pid < 0) fail("no process: %s", strerror(errno));
  if (agent->pid == 0) {
    run_agent(argv, output[1]);
    why = errno;
    _exit(write(failed[1], &why, sizeof why) == sizeof why ? 127 : 126);
  }
  close(output[1]);
  close(failed[1]);
  /* The pipe closes with the start of the program, or says why there was none. */
  if (read(failed[0], &why, sizeof why) > 0) fail("%s cannot be started: %s", argv[0], strerror(why));
  close(failed[0]);
  agent->output = output[0];
  say("started as process %d", (int)agent->pid);
}

static void end_line(struct agent *agent) {
  write_line("agent: ", agent->line, agent->line_bytes);
  agent->line_bytes = 0;
}

void copy_agent_output(struct agent *agent) {
  char bytes[LINE_BYTES];
  ssize_t got = read(agent->output, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    close(agent->output);
    agent->output = -1;
    if (agent->line_bytes > 0) end_line(agent);
    return;
  }
  for (ssize_t at = 0; at < got; at++) {
    if (bytes[at] == '\n') {
      if (!agent->line_is_cut) end_line(agent);
      agent->line_is_cut = false;
    } else if (!agent->line_is_cut) {
      agent->line[agent->line_bytes++] = bytes[at];
      if (agent->line_bytes < sizeof agent->line) continue;
      /* The rest of a long line is dropped. */
      end_line(agent);
      agent->line_is_cut = true;
    }
  }
}
