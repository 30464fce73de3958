/*
 * The upstream of every server under test. It sends prepared answers, chosen by the path of the request.
 *
 *     upstream ANSWERS      prints its port
 *
 * ANSWERS has for each path a line `PATH PIECES PACE_MS`, and for each piece a line with its length and then its bytes. The
 * first piece is sent at once, and another one every PACE_MS. If there is also a `PATH:stream`, it answers the requests on PATH
 * that ask for a stream in their body. Requests have a content-length and come one at a time. Written
 * in C because it shares a core with the load: in Node the two would be slower than the servers that are measured.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ANSWERS_MAX = 128, PIECES_MAX = 512, HEAD_MAX = 16384, SOCKETS_MAX = 65536, TICKS_MAX = 20 };

typedef struct { char *bytes; int length; } Piece;
typedef struct Answer { char path[128]; int count, pace; Piece pieces[PIECES_MAX]; const struct Answer *streamed; } Answer;
typedef struct {
  char head[HEAD_MAX];
  int headLength;
  int64_t missing;      /* bytes of the body that are still to come, once the head is whole */
  const Answer *answer; /* the one under way, or the next one */
  int matched, isStream; /* characters of `asksStream` seen in a row; whether the body asks for a stream */
  int next, sent;       /* the answer's next piece, and the number of its bytes that are sent */
  int phase;            /* a piece is due in each ms that has this remainder by the pace */
} Connection;

static Answer answers[ANSWERS_MAX];
static Answer nothing = {.count = 1, .pace = 1, .pieces = {{"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 45}}};
static int answerCount, phases;
static Connection *connections[SOCKETS_MAX];
static int streaming[SOCKETS_MAX], streamingCount; /* sockets with pieces to come */

static const char asksStream[] = "\"stream\":";

static void die(const char *why) { fprintf(stderr, "upstream: %s\n", why); exit(1); }

static void readAnswers(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) die("no answers");
  for (Answer *a = answers; fscanf(file, "%127s %d %d\n", a->path, &a->count, &a->pace) == 3; a++, answerCount++) {
    if (a->count > PIECES_MAX || answerCount == ANSWERS_MAX) die("too many pieces");
    for (int i = 0; i < a->count; i++) {
      Piece *piece = &a->pieces[i];
      if (fscanf(file, "%d", &piece->length) != 1 || fgetc(file) != '\n') die("bad answers");
      piece->bytes = malloc(piece->length);
      if (fread(piece->bytes, 1, piece->length, file) != (size_t)piece->length) die("bad answers");
    }
  }
  fclose(file);
  for (Answer *a = answers; a < answers + answerCount; a++)
    for (Answer *other = answers; other < answers + answerCount; other++) {
      int length = strlen(a->path);
      if (!strncmp(other->path, a->path, length) && !strcmp(other->path + length, ":stream")) a->streamed = other;
    }
}

/* Looks in the next bytes of a body for `"stream": true`, which nothing else in our requests contains. */
static void seekStream(Connection *c, const char *bytes, int length) {
  for (int i = 0; i < length;) {
    if (c->matched == 0) {
      const char *found = memchr(bytes + i, asksStream[0], length - i);
      if (!found) return;
      i = found - bytes + 1;
      c->matched = 1;
    } else if (c->matched == sizeof asksStream - 1) {
      if (bytes[i] == ' ') i++;
      else {
        c->isStream |= bytes[i] == 't';
        c->matched = 0;
      }
    } else if (bytes[i] == asksStream[c->matched]) {
      c->matched++;
      i++;
    } else c->matched = 0;
  }
}

/* Sends the rest of the piece that is due. Returns whether all of it is sent; if the socket is full, it is tried again later. */
static int put(int socket, Connection *c) {
  const Piece *piece = &c->answer->pieces[c->next];
  while (c->sent < piece->length) {
    int written = write(socket, piece->bytes + c->sent, piece->length - c->sent);
    if (written <= 0) return 0;
    c->sent += written;
  }
  c->next++;
  c->sent = 0;
  return 1;
}

static void drop(int socket) {
  free(connections[socket]);
  connections[socket] = NULL;
  close(socket);
}

static void sendAnswer(int socket, Connection *c) {
  c->headLength = 0;
  c->next = c->sent = 0;
  if (put(socket, c) && c->answer->count == 1) {
    c->answer = NULL;
    return;
  }
  c->phase = phases++ % c->answer->pace;
  streaming[streamingCount++] = socket;
}

/* Reads from a whole head which answer is asked for, and the length of the body. */
static void readHead(Connection *c) {
  char *path = strchr(c->head, ' ');
  int length = path ? strcspn(++path, " ") : 0;
  for (int i = 0; i < answerCount && !c->answer; i++)
    if ((int)strlen(answers[i].path) == length && !strncmp(answers[i].path, path, length)) c->answer = &answers[i];
  char *declared = strcasestr(c->head, "\r\ncontent-length:");
  if (!c->answer) {
    /* Peers also ask for lists of models, and whether the upstream is alive. */
    fprintf(stderr, "upstream: nothing is prepared for\n%s", c->head);
    c->answer = &nothing;
  }
  c->missing = declared ? atoll(declared + 17) : 0;
}

static void take(int socket, Connection *c, char *bytes, int length) {
  if (!c->answer) {
    if (c->headLength + length > HEAD_MAX - 1 + 262144) die("a head without an end");
    int room = HEAD_MAX - 1 - c->headLength, copied = length < room ? length : room;
    memcpy(c->head + c->headLength, bytes, copied);
    c->head[c->headLength + copied] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (!end) {
      if (copied < length) die("a head without an end");
      c->headLength += copied;
      return;
    }
    int used = end + 4 - c->head - c->headLength;
    bytes += used;
    length -= used;
    end[4] = 0;
    readHead(c);
    c->matched = c->isStream = 0;
  }
  if (c->answer->streamed) seekStream(c, bytes, length);
  c->missing -= length;
  if (c->missing != 0) return;
  if (c->isStream) c->answer = c->answer->streamed;
  sendAnswer(socket, c);
}

/* Called every ms. */
static void tick(int ms) {
  for (int i = 0; i < streamingCount; i++) {
    int socket = streaming[i];
    Connection *c = connections[socket];
    if (c && c->answer) {
      int isDue = c->sent > 0 || c->phase == ms % c->answer->pace;
      if (!isDue || !put(socket, c) || c->next < c->answer->count) continue;
      c->answer = NULL;
    }
    streaming[i--] = streaming[--streamingCount];
  }
}

static void watch(int epoll, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static int listenOnLoopback(void) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  if (bind(listener, (void *)&address, size) || listen(listener, 4096)) die("cannot listen");
  getsockname(listener, (void *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

static void acceptAll(int epoll, int listener) {
  for (int socket; (socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    if (socket >= SOCKETS_MAX) die("too many connections");
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    connections[socket] = calloc(1, sizeof(Connection));
    watch(epoll, socket);
  }
}

int main(int count, char **arguments) {
  if (count < 2) die("usage: upstream ANSWERS");
  signal(SIGPIPE, SIG_IGN);
  readAnswers(arguments[1]);
  int epoll = epoll_create1(0), listener = listenOnLoopback(), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  timerfd_settime(timer, 0, &(struct itimerspec){{0, 1000000}, {0, 1000000}}, NULL);
  watch(epoll, listener);
  watch(epoll, timer);
  static char bytes[262144];
  static struct epoll_event events[512];
  for (int ms = 0;;) {
    int ready = epoll_wait(epoll, events, 512, -1);
    for (int i = 0; i < ready; i++) {
      int descriptor = events[i].data.fd;
      uint64_t ticks = 0;
      if (descriptor == listener) acceptAll(epoll, listener);
      else if (descriptor == timer) {
        if (read(timer, &ticks, sizeof ticks) > 0) for (ticks = ticks < TICKS_MAX ? ticks : TICKS_MAX; ticks > 0; ticks--) tick(ms++);
      } else {
        int length = read(descriptor, bytes, sizeof bytes);
        if (length > 0) take(descriptor, connections[descriptor], bytes, length);
        else if (length == 0 || events[i].events & (EPOLLHUP | EPOLLERR)) drop(descriptor);
      }
    }
  }
}
