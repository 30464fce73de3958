/*
 * A disk that fails syncs, for scripts/power-cut.ts, loaded into a process with LD_PRELOAD. For each file below
 * CUT_FOLDER, CUT_DISK has the data that would survive a loss of power: data written before a successful sync. A
 * failed sync loses its data, as on Linux: the process can still read the data, and later syncs succeed without it. Of
 * every CUT_EVERY syncs, CUT_FAILS in a row fail. Syncs of the spool never fail.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct op {
  struct op *next;
  off_t at;
  size_t length; /* 0: cut to `at` */
  char bytes[];
};

struct file {
  struct file *next;
  struct op *first, *last;
  char name[256];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static long syncs;

/* Returns the name of a watched file, or NULL. */
static const char *name_of(const char *path) {
  static _Thread_local char name[256];
  const char *folder = getenv("CUT_FOLDER");
  size_t length = folder ? strlen(folder) : 0;
  if (!length || strncmp(path, folder, length) || path[length] != '/') return NULL;
  snprintf(name, sizeof name, "%s", path + length + 1);
  return strstr(name, "-shm") || strstr(name, ".lock") || strchr(name, '/') ? NULL : name;
}

static const char *name_of_fd(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return NULL;
  path[length] = 0;
  return name_of(path);
}

static struct file *find(const char *name) {
  for (struct file *f = files; f; f = f->next)
    if (!strcmp(f->name, name)) return f;
  struct file *f = calloc(1, sizeof *f);
  snprintf(f->name, sizeof f->name, "%s", name);
  f->next = files;
  return files = f;
}

static void note(int fd, off_t at, const void *bytes, size_t length) {
  const char *name = name_of_fd(fd);
  if (!name) return;
  pthread_mutex_lock(&lock);
  struct file *f = find(name);
  struct op *o = malloc(sizeof *o + length);
  o->next = NULL;
  o->at = at;
  o->length = length;
  if (length) memcpy(o->bytes, bytes, length);
  if (f->last) f->last->next = o;
  else f->first = o;
  f->last = o;
  pthread_mutex_unlock(&lock);
}

static void forget(struct file *f) {
  for (struct op *o = f->first, *next; o; o = next) {
    next = o->next;
    free(o);
  }
  f->first = f->last = NULL;
}

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_unlink)(const char *);

__attribute__((constructor)) static void start(void) {
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_write = dlsym(RTLD_NEXT, "write");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
}

/* Writes the waiting changes to the disk that survives. */
static void keep(struct file *f) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", getenv("CUT_DISK"), f->name);
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  for (struct op *o = f->first; o; o = o->next) {
    if (o->length) real_pwrite(fd, o->bytes, o->length, o->at);
    else real_ftruncate(fd, o->at);
  }
  close(fd);
  forget(f);
}

static int sync_file(int fd) {
  const char *name = name_of_fd(fd);
  if (!name) return real_fsync(fd);
  pthread_mutex_lock(&lock);
  struct file *f = find(name);
  long every = atol(getenv("CUT_EVERY")), fails = atol(getenv("CUT_FAILS"));
  int is_failure = !strstr(name, ".spool") && syncs++ % every >= every - fails;
  if (is_failure) forget(f);
  else keep(f);
  pthread_mutex_unlock(&lock);
  if (!is_failure) return 0;
  errno = EIO;
  return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) {
  ssize_t done = real_pwrite(fd, bytes, length, at);
  if (done > 0) note(fd, at, bytes, done);
  return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

/* Records writes of the spool, which append. */
ssize_t write(int fd, const void *bytes, size_t length) {
  ssize_t done = real_write(fd, bytes, length);
  struct stat status;
  if (done > 0 && name_of_fd(fd) && !fstat(fd, &status)) note(fd, status.st_size - done, bytes, done);
  return done;
}

int ftruncate64(int fd, off_t length) {
  int result = real_ftruncate(fd, length);
  if (!result) note(fd, length, NULL, 0);
  return result;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }
int fsync(int fd) { return sync_file(fd); }
int fdatasync(int fd) { return sync_file(fd); }

/* Removes the file from the disk at once, because SQLite removes a log only when its data is in the database file. */
int unlink(const char *path) {
  const char *name = name_of(path);
  if (name) {
    char kept[PATH_MAX];
    pthread_mutex_lock(&lock);
    forget(find(name));
    snprintf(kept, sizeof kept, "%s/%s", getenv("CUT_DISK"), name);
    real_unlink(kept);
    pthread_mutex_unlock(&lock);
  }
  return real_unlink(path);
}
