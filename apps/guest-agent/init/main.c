/* The stages of a boot in their order, then the loop of pid 1. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static struct relay relay;

static void open_console(void) {
  int fd = open("/dev/console", O_RDWR | O_NOCTTY);
  for (int at = 0; fd >= 0 && at < 3; at++) dup2(fd, at);
  if (fd > 2) close(fd);
}

static struct options read_options(void) {
  struct options options;
  char line[CMDLINE_BYTES], error[ERROR_BYTES];
  if (read_file("/proc/cmdline", line, sizeof line) < 0) fail("/proc/cmdline cannot be read: %s", strerror(errno));
  if (!parse_options(line, &options, error)) fail("%s", error);
  say("accepted");
  return options;
}

static void make_root(const struct options *options) {
  stage("disks");
  struct disk base = find_disk("base", &options->base), payload = find_disk("payload", &options->payload), scratch, layer;
  if (!options->scratch_is_tmpfs) scratch = find_disk("scratch", &options->scratch);
  if (options->has_layer) layer = find_disk("layer", &options->layer);
  enter_root(&base, options->scratch_is_tmpfs ? NULL : &scratch, options->has_layer ? &layer : NULL, options->rescue);
  stage("payload");
  mount_payload(&payload);
}

static int open_link(struct link_target *target) {
  if (find_target(target) != 0) fail("the way to the host is not there: %s: %s", target->kind == LINK_VSOCK ? "vsock" : target->text, strerror(errno));
  int listener = listen_on(LINK_SOCKET);
  if (listener < 0) fail("%s cannot be opened: %s", LINK_SOCKET, strerror(errno));
  say("%s to %s", LINK_SOCKET, target->kind == LINK_VSOCK ? "vsock" : target->text);
  return listener;
}

static int watch_signals(void) {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGTERM);
  sigprocmask(SIG_BLOCK, &watched, NULL);
  signal(SIGPIPE, SIG_IGN);
  /* Ctrl-Alt-Del, which a host can send, asks for an orderly end as SIGINT does. */
  reboot(RB_DISABLE_CAD);
  int fd = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) fail("signals cannot be watched: %s", strerror(errno));
  return fd;
}

/* Takes every ended child, orphans too. True once the agent is among them. */
static bool reap(const struct agent *agent, int *status) {
  bool is_over = false;
  int ended;
  for (pid_t pid; (pid = waitpid(-1, &ended, WNOHANG)) > 0;) {
    if (pid != agent->pid) continue;
    *status = ended;
    is_over = true;
  }
  return is_over;
}

/* Gives the agent's status once it has ended and the link has carried its last bytes. */
static int serve(struct agent *agent, int signals, bool *is_stopped) {
  enum { AT_SIGNALS, AT_OUTPUT, AT_RELAY, ALL = AT_RELAY + RELAY_FDS };
  int status = 0;
  /* When waiting ends: for the agent that was asked to stop, then for its last bytes; 0 while it serves. */
  long long until = 0;
  for (bool is_over = false; !is_over || !relay_is_idle(&relay) || agent->output >= 0;) {
    struct pollfd fds[ALL] = {{.fd = signals, .events = POLLIN}, {.fd = agent->output, .events = POLLIN}};
    int wait = relay_wants(&relay, fds + AT_RELAY, now_ms());
    if (until != 0 && (wait < 0 || wait > until - now_ms())) wait = until > now_ms() ? (int)(until - now_ms()) : 0;
    if (poll(fds, ALL, wait) < 0 && errno != EINTR) fail("no events any more: %s", strerror(errno));
    for (struct signalfd_siginfo info; read(signals, &info, sizeof info) == sizeof info;) {
      if (info.ssi_signo == SIGCHLD || until != 0) continue;
      say("asked to stop");
      *is_stopped = true;
      kill(agent->pid, SIGTERM);
      until = now_ms() + STOP_MS;
    }
    if (fds[AT_OUTPUT].revents) copy_agent_output(agent);
    relay_step(&relay, fds + AT_RELAY, now_ms());
    if (!is_over && reap(agent, &status)) {
      is_over = true;
      /* What it started goes with it, and nobody dials again. */
      kill(-1, SIGKILL);
      relay.listener = -1;
      until = now_ms() + LAST_BYTES_MS;
    }
    if (until != 0 && now_ms() >= until) {
      if (is_over) break;
      kill(agent->pid, SIGKILL);
      until = now_ms() + STOP_MS;
    }
  }
  return status;
}

/* Unlike a failure it leaves a scratch disk that another guest can mount read-only. */
static void end_in_order(void) {
  long long until = now_ms() + STOP_MS;
  kill(-1, SIGKILL);
  while (waitpid(-1, NULL, WNOHANG) >= 0 && now_ms() < until) poll(NULL, 0, 5);
  stage("scratch");
  seal_scratch();
  end_vm();
}

int main(int count, char **argv) {
  if (getpid() != 1) return count == 3 && strcmp(argv[1], "add-to-clock") == 0 ? add_to_clock(argv[2]) : 2;
  mount_kernel_filesystems();
  open_console();
  stage("options");
  struct options options = read_options();
  stage("config");
  take_agent_config();
  stage("modules");
  load_modules();
  make_root(&options);
  stage("config");
  store_agent_config();
  stage("loopback");
  raise_loopback();
  stage("link");
  relay_start(&relay, &options.link, open_link(&options.link));
  stage("agent");
  int signals = watch_signals();
  struct agent agent = {.output = -1};
  start_agent(&agent);
  bool is_stopped = false;
  int status = serve(&agent, signals, &is_stopped);
  long long lived_ms = now_ms() - agent.started_at;
  if (is_stopped) {
    say("stopped after %lld ms", lived_ms);
    end_in_order();
  }
  if (WIFSIGNALED(status)) {
    fail("killed by signal %d after %lld ms%s", WTERMSIG(status), lived_ms, memory_ran_out() ? "; memory ran out" : "");
  }
  if (WEXITSTATUS(status) != 0) fail("ended with status %d after %lld ms", WEXITSTATUS(status), lived_ms);
  say("ended with status 0 after %lld ms", lived_ms);
  end_in_order();
}
