/*
 * Puts load on a server and checks every answer.
 *
 *     load PORT REQUEST CONNECTIONS REQUESTS RATE MARK TIMES
 *
 * REQUEST is a file with requests that are sent in turn: for each a line with its length, and then its bytes. REQUESTS is the number
 * that is sent in all. With RATE 0 each request follows the answer before it on its connection. Otherwise RATE requests a second are sent on a schedule, and the time of an answer counts from when its
 * request was due. Before the schedule each connection has one answer, which is counted and not timed. An answer is good if its
 * status is 200 and its body has MARK exactly TIMES times. Prints a line of JSON; times in ms.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, STATUS_MAX = 600, SILENCE_MAX_MS = 30000, REQUESTS_MAX = 4096 };
enum Place { IN_HEAD, IN_BODY, IN_SIZE, IN_CHUNK, BEHIND_CHUNK, IN_TRAILER };

typedef struct { char *bytes; int length; } Request;
typedef struct {
  const Request *request;
  int socket, isBusy, sent;
  enum Place place;
  int64_t missing; /* of the body or the chunk */
  int headLength, status, marks, matched, closes, lineLength;
  double dueAt, firstAt;
  char head[HEAD_MAX];
} Connection;

static int port, epoll, timer;
static Request requests[REQUESTS_MAX];
static int requestCount, total, begun, over, untimed, times, bad, broken, markLength;
static int statuses[STATUS_MAX];
static const char *mark;
static double rate, startedAt, *tookMs, *firstMs;
static int64_t bodyBytes;

static void die(const char *why) { fprintf(stderr, "load: %s\n", why); exit(1); }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void readRequests(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die("no request");
  for (Request *r = requests; fscanf(file, "%d", &r->length) == 1; r++) {
    if (++requestCount > REQUESTS_MAX - 1) die("too many requests");
    r->bytes = malloc(r->length);
    if (fgetc(file) != '\n' || fread(r->bytes, 1, r->length, file) != (size_t)r->length) die("bad requests");
  }
  if (requestCount == 0) die("no request");
  fclose(file);
}

static void watch(Connection *c, int operation, int events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  epoll_ctl(epoll, operation, c->socket, &event);
}

static void dial(Connection *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  c->socket = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->socket, (void *)&address, sizeof address)) die("nothing listens");
  setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  fcntl(c->socket, F_SETFL, O_NONBLOCK);
  watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void push(Connection *c) {
  while (c->sent < c->request->length) {
    int written = write(c->socket, c->request->bytes + c->sent, c->request->length - c->sent);
    if (written > 0) c->sent += written;
    else {
      if (errno == EAGAIN) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return;
    }
  }
}

static void begin(Connection *c, double dueAt) {
  c->request = &requests[begun++ % requestCount];
  c->isBusy = 1;
  c->place = IN_HEAD;
  c->sent = c->headLength = c->status = c->marks = c->matched = c->closes = 0;
  c->firstAt = 0;
  c->dueAt = dueAt;
  push(c);
}

static void finish(Connection *c) {
  int isGood = c->status == 200 && c->marks == times;
  tookMs[over] = (now() - c->dueAt) * 1e3;
  firstMs[over++] = ((c->firstAt ? c->firstAt : now()) - c->dueAt) * 1e3;
  c->isBusy = 0;
  if (c->status > 0 && c->status < STATUS_MAX) statuses[c->status]++;
  if (!isGood && bad++ == 0)
    fprintf(stderr, "load: status %d, %d of %d marks:\n%.600s\n", c->status, c->marks, times, c->head);
}

/* Counts the mark, also if it arrives in two parts. The first character of the mark is nowhere else in it. */
static void count(Connection *c, const char *bytes, int length) {
  bodyBytes += length;
  for (int i = 0; i < length;) {
    if (c->matched == 0) {
      const char *found = memchr(bytes + i, mark[0], length - i);
      if (!found) return;
      i = found - bytes + 1;
      c->matched = 1;
    } else if (bytes[i] == mark[c->matched]) {
      c->matched++;
      i++;
    } else c->matched = 0;
    if (c->matched == markLength) {
      c->marks++;
      c->matched = 0;
    }
  }
}

/* Reads the status from a whole head, and how the body ends. */
static void readHead(Connection *c) {
  c->status = atoi(c->head + 9);
  c->closes = strcasestr(c->head, "\r\nconnection: close") != NULL;
  char *length = strcasestr(c->head, "\r\ncontent-length:");
  c->missing = length ? atoll(length + 17) : 0;
  c->place = strcasestr(c->head, "\r\ntransfer-encoding: chunked") ? IN_SIZE : IN_BODY;
}

/* Returns the number of bytes that belonged to the head. */
static int takeHead(Connection *c, const char *bytes, int length) {
  if (!c->firstAt) c->firstAt = now();
  int room = HEAD_MAX - 1 - c->headLength, copied = length < room ? length : room, before = c->headLength;
  memcpy(c->head + before, bytes, copied);
  c->head[before + copied] = 0;
  char *end = strstr(c->head, "\r\n\r\n");
  if (!end && copied < length) die("an answer whose head has no end");
  if (!end) {
    c->headLength += copied;
    return length;
  }
  int used = end + 4 - c->head - before;
  end[2] = 0;
  readHead(c);
  return used;
}

/* Takes bytes of an answer. Returns whether it is whole. */
static int take(Connection *c, const char *bytes, int length) {
  int at = 0;
  if (c->place == IN_HEAD) {
    at = takeHead(c, bytes, length);
    if (c->place == IN_HEAD) return 0;
  }
  if (c->place == IN_BODY) {
    count(c, bytes + at, length - at);
    c->missing -= length - at;
    return c->missing <= 0;
  }
  if (c->place == IN_SIZE && at > 0) c->missing = 0;
  while (at < length) {
    char byte = bytes[at];
    if (c->place == IN_CHUNK) {
      int part = c->missing < length - at ? c->missing : length - at;
      count(c, bytes + at, part);
      at += part;
      c->missing -= part;
      if (c->missing == 0) c->place = BEHIND_CHUNK;
      continue;
    }
    at++;
    if (c->place == IN_SIZE) {
      if (byte == '\n') c->place = c->missing ? IN_CHUNK : IN_TRAILER, c->lineLength = 0;
      else if (byte != '\r') c->missing = c->missing * 16 + (byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);
    } else if (byte == '\n') {
      if (c->place == IN_TRAILER && c->lineLength == 0) return 1;
      c->place = c->place == IN_TRAILER ? IN_TRAILER : IN_SIZE;
      c->lineLength = 0;
    } else if (byte != '\r') c->lineLength++;
  }
  return 0;
}

static void redial(Connection *c) {
  close(c->socket);
  dial(c);
}

/* Returns whether the connection is free for another request. */
static int hear(Connection *c) {
  static char bytes[262144];
  int length = read(c->socket, bytes, sizeof bytes);
  if (length < 0 && errno == EAGAIN) return 0;
  if (length <= 0) {
    int wasBusy = c->isBusy;
    if (wasBusy) {
      broken++;
      finish(c);
    }
    redial(c);
    return wasBusy;
  }
  if (!c->isBusy || !take(c, bytes, length)) return 0;
  finish(c);
  if (c->closes) redial(c);
  return 1;
}

static double dueNext(void) { return startedAt + (begun - untimed) / rate; }

/* Sends the requests that are due, as far as connections are free, and sets the timer to the next one. */
static int beginDue(Connection **idle, int idleCount) {
  while (begun < total && idleCount > 0 && dueNext() <= now()) begin(idle[--idleCount], dueNext());
  if (begun < total && idleCount > 0) {
    double dueAt = dueNext();
    struct itimerspec at = {.it_value = {(time_t)dueAt, (long)((dueAt - (time_t)dueAt) * 1e9)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
  }
  return idleCount;
}

static int byValue(const void *a, const void *b) {
  double difference = *(const double *)a - *(const double *)b;
  return difference < 0 ? -1 : difference > 0;
}

static double percentile(double *values, double share) {
  int timed = over - untimed;
  return timed ? values[untimed + (int)((timed - 1) * share)] : 0;
}

static void report(double seconds) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  qsort(tookMs + untimed, over - untimed, sizeof(double), byValue);
  qsort(firstMs + untimed, over - untimed, sizeof(double), byValue);
  printf("{\"good\":%d,\"bad\":%d,\"broken\":%d,\"seconds\":%.4f,\"cpuSeconds\":%.4f,\"bodyBytes\":%lld,", over - bad, bad,
         broken, seconds, cpu, (long long)bodyBytes);
  printf("\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,", percentile(tookMs, .5), percentile(tookMs, .99), percentile(tookMs, .999));
  printf("\"firstP50\":%.3f,\"firstP99\":%.3f,\"firstP999\":%.3f,\"statuses\":{", percentile(firstMs, .5),
         percentile(firstMs, .99), percentile(firstMs, .999));
  const char *comma = "";
  for (int i = 0; i < STATUS_MAX; i++)
    if (statuses[i]) printf("%s\"%d\":%d", comma, i, statuses[i]), comma = ",";
  printf("}}\n");
}

int main(int argumentCount, char **arguments) {
  if (argumentCount < 8) die("usage: load PORT REQUEST CONNECTIONS REQUESTS RATE MARK TIMES");
  port = atoi(arguments[1]);
  readRequests(arguments[2]);
  int connectionCount = atoi(arguments[3]), idleCount = 0;
  rate = atof(arguments[5]);
  /* Opening connections does not count in the times of answers: with many of them the slowest hundredth would show nothing else. */
  if (rate > 0) untimed = connectionCount;
  total = atoi(arguments[4]) + untimed;
  mark = arguments[6];
  markLength = strlen(mark);
  times = atoi(arguments[7]);
  tookMs = malloc(total * sizeof(double));
  firstMs = malloc(total * sizeof(double));
  Connection *connections = calloc(connectionCount, sizeof(Connection));
  Connection **idle = malloc(connectionCount * sizeof(Connection *));
  epoll = epoll_create1(0);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &(struct epoll_event){.events = EPOLLIN, .data.ptr = NULL});
  for (int i = 0; i < connectionCount; i++) dial(&connections[i]);
  startedAt = now();
  for (int i = 0; i < connectionCount; i++)
    if (begun < total) begin(&connections[i], now());
  static struct epoll_event events[512];
  while (over < total) {
    int ready = epoll_wait(epoll, events, 512, SILENCE_MAX_MS);
    if (ready == 0) die("no answer came for half a minute");
    for (int i = 0; i < ready; i++) {
      Connection *c = events[i].data.ptr;
      uint64_t ticks;
      if (!c) {
        if (read(timer, &ticks, sizeof ticks) < 0) continue;
      } else {
        if (events[i].events & EPOLLOUT) {
          watch(c, EPOLL_CTL_MOD, EPOLLIN);
          push(c);
        }
        if (!(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !hear(c)) continue;
        if (rate > 0) idle[idleCount++] = c;
        else if (begun < total) begin(c, now());
        if (over == untimed) startedAt = now();
      }
      if (rate > 0 && over >= untimed) idleCount = beginDue(idle, idleCount);
    }
  }
  report(now() - startedAt);
}
