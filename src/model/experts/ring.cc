#include "model/experts/ring.h"

#include <liburing.h>

#include <cerrno>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker::model {
namespace {

/// Submissions are made by whoever holds the mutex; completions are taken by the one who waits, without it.
class Ring final : public ReadQueue {
 public:
  static Result<std::unique_ptr<Ring>> open(const gguf::TensorReader& reader, int depth) {
    auto ring = std::unique_ptr<Ring>(new Ring(reader, depth));
    const int refused = io_uring_queue_init(static_cast<unsigned>(depth), &ring->ring_, 0);
    if (refused < 0) return Error{ErrorCode::kUnsupported, str_cat("io_uring: ", system_reason(-refused))};
    ring->open_ = true;
    return ring;
  }
  ~Ring() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  bool begin(int i, const ExpertRead& read) override {
    const auto direct = reader_.direct_read(*read.tensor, read.begin, read.bytes);
    if (!direct) return false;
    const MutexLock lock(mu_);
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
    Under& under = under_way_[static_cast<size_t>(i)];
    under = {.wanted = direct->lead + read.bytes, .bytes = read.window.subspan(direct->lead, read.bytes)};
    io_uring_prep_read(entry, direct->fd, read.window.data(), static_cast<unsigned>(direct->bytes), direct->offset);
    io_uring_sqe_set_data64(entry, static_cast<uint64_t>(i));
    // Interrupted or short of memory, the entry stays in the queue, where its window must not be used otherwise.
    int sent = 0;
    do {
      sent = io_uring_submit(&ring_);
    } while (sent == -EINTR || sent == -EAGAIN || sent == -EBUSY);
    STOKER_CHECK(sent == 1);
    return true;
  }

  size_t wait(std::span<Done> done) override {
    io_uring_cqe* entry = nullptr;
    while (io_uring_wait_cqe(&ring_, &entry) < 0) {
    }
    const MutexLock lock(mu_);
    size_t n = 0;
    do {
      const auto i = static_cast<int>(io_uring_cqe_get_data64(entry));
      const Under& under = under_way_[static_cast<size_t>(i)];
      // Anything else than all of it is read again as threads read, which tells what is wrong, if something is.
      const bool complete = entry->res >= 0 && static_cast<uint64_t>(entry->res) >= under.wanted;
      done[n++] = {.i = i, .bytes = complete ? under.bytes : std::span<std::byte>(), .error = {}};
      io_uring_cqe_seen(&ring_, entry);
    } while (n < done.size() && io_uring_peek_cqe(&ring_, &entry) == 0);
    return n;
  }

 private:
  struct Under {
    uint64_t wanted = 0;  ///< What the kernel must have read, from the aligned offset on.
    std::span<std::byte> bytes{};
  };
  Ring(const gguf::TensorReader& reader, int depth) : reader_(reader), under_way_(static_cast<size_t>(depth)) {}

  const gguf::TensorReader& reader_;
  io_uring ring_{};
  bool open_ = false;
  Mutex mu_;
  std::vector<Under> under_way_ GUARDED_BY(mu_);
};

}  // namespace

Result<std::unique_ptr<ReadQueue>> open_ring(const gguf::TensorReader& reader, int depth) {
  if (!reader.direct()) {
    return Error{ErrorCode::kUnsupported,
                 "io_uring: the file system has no direct reads, which alone are made this way"};
  }
  STOKER_TRY(std::unique_ptr<Ring> ring, Ring::open(reader, depth));
  return std::unique_ptr<ReadQueue>(std::move(ring));
}

}  // namespace stoker::model
