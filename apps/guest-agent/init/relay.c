/*
 * Bytes between one connection of the guest agent and one dial to the host, unchanged, with at most LANE_BYTES waiting each way.
 *
 *   no session --(agent connects, host dialled)--> session --(either side ends)--> last bytes --> no session
 *
 * The end of either side is the end of both, once what that side had sent has left (at most LAST_BYTES_MS): the link gives no meaning
 * to a half-close. What an earlier session left in a virtio-serial port is dealt with by the link's own preamble and padding; nothing
 * is added here. A newer connection replaces the one there is: the agent dials again only when it has given the old one up.
 */
#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { AT_LISTENER, AT_AGENT, AT_HOST };

int listen_on(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, path, strlen(path));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || chmod(path, 0600) != 0 || listen(fd, 4) != 0) return -1;
  return fd;
}

static void close_session(struct relay *relay) {
  struct side *const sides[] = {&relay->agent, &relay->host};
  for (int at = 0; at < 2; at++) {
    if (sides[at]->fd >= 0) close(sides[at]->fd);
    sides[at]->fd = -1;
    sides[at]->ended = sides[at]->deaf = false;
    sides[at]->start = sides[at]->end = 0;
  }
  relay->away = false;
  relay->closes_at = 0;
}

void relay_start(struct relay *relay, const struct link_target *target, int listener) {
  relay->target = target;
  relay->listener = listener;
  relay->agent.fd = relay->host.fd = -1;
  close_session(relay);
}

bool relay_is_idle(const struct relay *relay) {
  return relay->agent.fd < 0;
}

static bool holds_bytes(const struct side *side) {
  return side->start < side->end;
}

/* May bytes of `from` be taken? Not while there is no room, nor once nobody is left to give them to. */
static bool may_read(const struct side *from, const struct side *to) {
  return !from->ended && !to->ended && !to->deaf && (to->end < LANE_BYTES || to->start > 0);
}

static struct pollfd wanted(const struct side *side, const struct side *other, bool closes) {
  short events = (may_read(side, other) ? POLLIN : 0) | (holds_bytes(side) ? POLLOUT : 0);
  /* That it hung up is heard with no events too, once: then it wakes for ever, so a descriptor that nothing is wanted of is left out. */
  return (struct pollfd){.fd = events || !closes ? side->fd : -1, .events = events};
}

int relay_wants(const struct relay *relay, struct pollfd fds[RELAY_FDS], long long now_ms) {
  fds[AT_LISTENER] = (struct pollfd){.fd = relay->listener, .events = POLLIN};
  fds[AT_AGENT] = fds[AT_HOST] = (struct pollfd){.fd = -1};
  if (relay_is_idle(relay)) return -1;
  if (relay->away) {
    /* Only whether the agent gives up: its bytes wait in its socket, so that none of them is stale when the host comes. */
    fds[AT_AGENT] = (struct pollfd){.fd = relay->agent.fd, .events = POLLRDHUP};
    return AWAY_POLL_MS;
  }
  fds[AT_AGENT] = wanted(&relay->agent, &relay->host, relay->closes_at != 0);
  fds[AT_HOST] = wanted(&relay->host, &relay->agent, relay->closes_at != 0);
  if (relay->closes_at == 0) return -1;
  return relay->closes_at > now_ms ? (int)(relay->closes_at - now_ms) : 0;
}

static void accept_agent(struct relay *relay) {
  int fd = accept4(relay->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  close_session(relay);
  int host = dial_target(relay->target);
  if (host < 0) {
    /* The agent sees its connection closed and dials again, later and later. */
    close(fd);
    return;
  }
  relay->agent.fd = fd;
  relay->host.fd = host;
  relay->away = target_is_away(relay->target, host);
}

/* A dial under way says "not connected" too, and shows its failure only when asked. */
static bool is_passing(int fd) {
  int why = 0;
  socklen_t bytes = sizeof why;
  if (errno != ENOTCONN) return errno == EAGAIN || errno == EINTR;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &bytes) == 0 && why == 0;
}

static void read_side(struct side *from, struct side *to) {
  if (to->start > 0) {
    memmove(to->bytes, to->bytes + to->start, to->end - to->start);
    to->end -= to->start;
    to->start = 0;
  }
  ssize_t got = read(from->fd, to->bytes + to->end, LANE_BYTES - to->end);
  if (got > 0) to->end += got;
  else if (got == 0 || !is_passing(from->fd)) from->ended = true;
  if (from->ended) from->start = from->end = 0;
}

static void write_side(struct side *side) {
  ssize_t got = write(side->fd, side->bytes + side->start, side->end - side->start);
  if (got > 0) side->start += got;
  else if (got < 0 && !is_passing(side->fd)) side->deaf = true;
  if (side->deaf || side->start == side->end) side->start = side->end = 0;
}

/* Reads first: what a side said before it failed is still delivered. */
static void move(struct side *side, struct side *other, short events) {
  if ((events & (POLLIN | POLLERR | POLLHUP)) && may_read(side, other)) read_side(side, other);
  if ((events & (POLLOUT | POLLERR | POLLHUP)) && holds_bytes(side)) write_side(side);
}

static bool is_over(const struct side *ended, const struct side *other) {
  return ended->ended && !holds_bytes(other);
}

void relay_step(struct relay *relay, const struct pollfd fds[RELAY_FDS], long long now_ms) {
  struct side *agent = &relay->agent, *host = &relay->host;
  if (relay->away) {
    if (fds[AT_AGENT].revents) close_session(relay);
    else relay->away = target_is_away(relay->target, host->fd);
  } else if (!relay_is_idle(relay)) {
    move(agent, host, fds[AT_AGENT].revents);
    move(host, agent, fds[AT_HOST].revents);
    bool hung_up = (fds[AT_AGENT].revents | fds[AT_HOST].revents) & POLLHUP;
    bool ends = hung_up || agent->ended || host->ended || agent->deaf || host->deaf;
    if (ends && relay->closes_at == 0) relay->closes_at = now_ms + LAST_BYTES_MS;
    bool is_late = relay->closes_at != 0 && now_ms >= relay->closes_at;
    if (is_over(agent, host) || is_over(host, agent) || is_late) close_session(relay);
  }
  if (fds[AT_LISTENER].revents) accept_agent(relay);
}
