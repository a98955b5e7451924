#include "base/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <thread>
#include <vector>

#include "base/terminal.h"

namespace stoker {
namespace {

TEST(ProgressLine, KnownTotal) {
  EXPECT_EQ(progress_line({"loading", 0, 2ull << 30, 0, true}, 200),
            "loading [........................]   0 %  0 B of 2 GiB");
  EXPECT_EQ(progress_line({"loading", 1ull << 30, 2ull << 30, 512.0 * (1 << 20), true}, 200),
            "loading [############............]  50 %  1 GiB of 2 GiB  512 MiB/s  2 s left");
  EXPECT_EQ(progress_line({"bench", 10, 10, 0.5, false}, 200),
            "bench [########################] 100 %  10 of 10  0.5/s  0 s left");
  EXPECT_EQ(progress_line({"x", 12, 10, 0, false}, 200), "x [########################] 100 %  10 of 10");
}

TEST(ProgressLine, UnknownTotal) {
  EXPECT_EQ(progress_line({"reading", 3u << 20, 0, 1 << 20, true}, 80), "reading  3 MiB  1 MiB/s");
}

TEST(ProgressLine, TimeLeft) {
  EXPECT_NE(progress_line({"x", 0, 1000, 10, false}, 200).find("1 min 40 s left"), std::string::npos);
  EXPECT_NE(progress_line({"x", 0, 10000, 1, false}, 200).find("2 h 46 min left"), std::string::npos);
  EXPECT_NE(progress_line({"x", 0, UINT64_MAX, 1e-9, false}, 200).find("99 h 59 min left"), std::string::npos);
}

TEST(ProgressLine, IsCutToTheTerminal) {
  EXPECT_EQ(progress_line({"loading", 1, 2, 1, true}, 11), "loading [#");
  EXPECT_EQ(progress_line({"loading", 1, 2, 1, true}, 0), "");
}

/// A pseudo terminal; what is written to `fd` can be read back.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(grantpt(master_) + unlockpt(master_), 0);
    fd = open(ptsname(master_), O_RDWR | O_NOCTTY);
    termios settings;
    tcgetattr(fd, &settings);
    cfmakeraw(&settings);
    tcsetattr(fd, TCSANOW, &settings);
    fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() {
    close(fd);
    close(master_);
  }
  std::string output() {
    std::string out(1 << 16, '\0');
    const ssize_t n = read(master_, out.data(), out.size());
    out.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return out;
  }
  int fd = -1;

 private:
  int master_;
};

Progress::Options eager(int fd) {
  Progress::Options options;
  options.label = "loading";
  options.total = 100;
  options.fd = fd;
  options.first_after = options.every = std::chrono::milliseconds(0);
  return options;
}

TEST(Progress, DrawsOnATerminalAndWipesItself) {
  Terminal terminal;
  {
    Progress progress(eager(terminal.fd));
    progress.add(50);
    const std::string drawn = terminal.output();
    EXPECT_EQ(drawn.find("\r\x1b[Kloading [############............]  50 %"), 0u) << drawn;
    EXPECT_EQ(drawn.find('\n'), std::string::npos);
  }
  EXPECT_EQ(terminal.output(), "\r\x1b[K");
}

TEST(Progress, FitsTheTerminal) {
  Terminal terminal;
  winsize size{};
  size.ws_col = 20;
  ASSERT_EQ(ioctl(terminal.fd, TIOCSWINSZ, &size), 0);
  Progress progress(eager(terminal.fd));
  progress.add(50);
  EXPECT_EQ(terminal.output(), "\r\x1b[Kloading [##########");
}

TEST(Progress, ALogLineTakesTheBarsPlace) {
  Terminal terminal;
  Progress progress(eager(terminal.fd));
  progress.add(1);
  terminal.output();
  terminal::write_above_bar(terminal.fd, "hello\n");
  EXPECT_EQ(terminal.output(), "\r\x1b[Khello\n");
  terminal::write_above_bar(terminal.fd, "again\n");
  EXPECT_EQ(terminal.output(), "again\n");
}

TEST(Progress, ShortJobsShowNothing) {
  Terminal terminal;
  {
    Progress::Options options = eager(terminal.fd);
    options.first_after = std::chrono::hours(1);
    Progress progress(options);
    progress.add(100);
  }
  EXPECT_EQ(terminal.output(), "");
}

TEST(Progress, IsRareAndThreadSafe) {
  Terminal terminal;
  Progress::Options options = eager(terminal.fd);
  options.every = std::chrono::hours(1);
  Progress progress(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) progress.add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string drawn = terminal.output();
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\r'), 1) << drawn;
}

TEST(Progress, IsQuietWithoutATerminal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  {
    Progress progress(eager(ends[1]));
    progress.add(50);
  }
  char c;
  EXPECT_EQ(read(ends[0], &c, 1), -1);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace stoker
