/* The kernel command line. Every word `firecrew.KEY=VALUE` is known, given once, and of its form, or nothing is booted. */
#include "init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that may be missing come last. */
enum key { KEY_BASE, KEY_SCRATCH, KEY_PAYLOAD, KEY_LINK, KEY_RESCUE, KEY_LAYER, KEYS };
static const char *const NAMES[KEYS] = {"base", "scratch", "payload", "link", "rescue", "layer"};
static const char PREFIX[] = "firecrew.";

static bool plain(const char *text, size_t most, const char *more) {
  size_t length = strlen(text);
  if (length == 0 || length > most) return false;
  for (; *text; text++) {
    bool known = (*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z');
    if (!known && !strchr("._-", *text) && !strchr(more, *text)) return false;
  }
  return true;
}

static const char *after(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static bool parse_disk(const char *value, struct disk_name *disk) {
  const char *label = after(value, "label:"), *serial = after(value, "serial:");
  const char *text = label ? label : serial;
  if (!text || !plain(text, label ? LABEL_BYTES - 1 : SERIAL_BYTES - 1, "")) return false;
  disk->by_label = label != NULL;
  strcpy(disk->text, text);
  return true;
}

static bool parse_link(const char *value, struct link_target *link) {
  const char *name = after(value, "virtio:"), *port = after(value, "vsock:"), *path = after(value, "unix:");
  if (name && plain(name, NAME_BYTES - 1, "")) {
    link->kind = LINK_VIRTIO;
    strcpy(link->text, name);
    return true;
  }
  if (path && *path == '/' && plain(path, TARGET_BYTES - 1, "/")) {
    link->kind = LINK_UNIX;
    strcpy(link->text, path);
    return true;
  }
  /* The largest number stands for "any port" and cannot be dialled. */
  if (!port || strlen(port) == 0 || strlen(port) > 10 || strspn(port, "0123456789") != strlen(port) || *port == '0') return false;
  unsigned long long number = strtoull(port, NULL, 10);
  link->kind = LINK_VSOCK;
  link->port = (unsigned)number;
  return number < 0xffffffffULL;
}

static bool take(enum key key, const char *value, struct options *options) {
  switch (key) {
    case KEY_BASE: return parse_disk(value, &options->base);
    case KEY_PAYLOAD: return parse_disk(value, &options->payload);
    case KEY_SCRATCH:
      options->scratch_is_tmpfs = strcmp(value, "tmpfs") == 0;
      return options->scratch_is_tmpfs || parse_disk(value, &options->scratch);
    case KEY_LINK: return parse_link(value, &options->link);
    case KEY_LAYER: return options->has_layer = parse_disk(value, &options->layer);
    case KEY_RESCUE: return options->rescue = strcmp(value, "1") == 0;
    default: return false;
  }
}

static bool refuse(char *error, const char *why, const char *what) {
  snprintf(error, ERROR_BYTES, "%s: %.200s", why, what);
  return false;
}

static bool take_word(char *word, struct options *options, bool given[KEYS], char *error) {
  char *value = strchr(word, '=');
  if (!value) return refuse(error, "a word without a value", word);
  *value++ = 0;
  for (enum key key = 0; key < KEYS; key++) {
    if (strcmp(word + sizeof PREFIX - 1, NAMES[key]) != 0) continue;
    if (given[key]) return refuse(error, "given twice", word);
    given[key] = true;
    return take(key, value, options) || refuse(error, "a value of another form", word);
  }
  return refuse(error, "an unknown key", word);
}

static bool same_disk(const struct disk_name *one, const struct disk_name *other) {
  return one->by_label == other->by_label && strcmp(one->text, other->text) == 0;
}

/* The name that two roles have; NULL where each has its own. */
static const char *shared_name(const struct options *options) {
  const struct disk_name *disks[4] = {&options->base, &options->payload};
  int count = 2;
  if (!options->scratch_is_tmpfs) disks[count++] = &options->scratch;
  if (options->has_layer) disks[count++] = &options->layer;
  for (int one = 0; one < count; one++) {
    for (int other = one + 1; other < count; other++) {
      if (same_disk(disks[one], disks[other])) return disks[one]->text;
    }
  }
  return NULL;
}

bool parse_options(const char *line, struct options *options, char error[ERROR_BYTES]) {
  bool given[KEYS] = {false};
  memset(options, 0, sizeof *options);
  while (*line) {
    /* The kernel lets quotes hide spaces; ours need none, so a quoted word of ours is refused by its form. */
    size_t length = 0;
    for (bool quoted = false; line[length] && (quoted || !strchr(" \t\r\n", line[length])); length++) {
      if (line[length] == '"') quoted = !quoted;
    }
    char word[PATH_BYTES];
    const char *start = line + (*line == '"');
    if (after(start, PREFIX)) {
      if (length >= sizeof word) return refuse(error, "a word that is too long", start);
      memcpy(word, line, length);
      word[length] = 0;
      if (start != line) return refuse(error, "a quoted word", word);
      if (!take_word(word, options, given, error)) return false;
    }
    line += length + (line[length] != 0);
  }
  for (enum key key = 0; key < KEY_RESCUE; key++) {
    if (!given[key]) return refuse(error, "a key is missing", NAMES[key]);
  }
  const char *shared = shared_name(options);
  if (shared) return refuse(error, "two disks of one name", shared);
  return !options->scratch_is_tmpfs || !options->rescue || refuse(error, "nothing to rescue from", "scratch=tmpfs");
}
