// How the store's reads come about: by threads that each read and pack, or by a queue and a few threads that keep it
// full, wait for it in turn, and pack.
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/cpu_order.h"
#include "base/fp_env.h"
#include "base/pool.h"
#include "model/experts/file_reader.h"
#include "model/experts/store_parts.h"

namespace stoker::model {

void ExpertStore::start() {
  depth_ = wanted_lanes_;
  if (depth_ == 0)
    depth_ = own_reader_ ? measure_lanes(*reader_, index_, piece_bytes_, windows_.bytes()) : kMostLanes / 2;
  const bool queued = reader_->queue() != nullptr;
  if (queued) {
    const MutexLock lock(mu_);
    pieces_.resize(kMostLanes);
    for (int i = 0; i < kMostLanes; ++i) free_windows_.push_back(i);
  }
  const int n_threads = queued ? std::min(usable_cpus(), kMostPackers) : depth_;
  for (int i = 0; i < n_threads; ++i) {
    lanes_.emplace_back([this, queued, i] {
      const FpEnvScope fp;
      unpin();  // Its maker may be a worker that stays on one processor.
      queued ? packer() : lane(i);
    });
  }
}

std::span<std::byte> ExpertStore::window(int i) const {
  const uint64_t bytes = BulkReader::window_bytes(piece_bytes_);
  return windows_.bytes().subspan(static_cast<uint64_t>(i) * bytes, bytes);
}

bool ExpertStore::next_piece(Piece& piece) {
  if (wanted_.empty() && ahead_.empty() && !assign_later()) return false;
  TaskQueue& tasks = wanted_.empty() ? ahead_ : wanted_;
  ReadTask& task = tasks.front();
  Slot& slot = slots_[static_cast<size_t>(task.slot)];
  const auto layer = static_cast<size_t>(slot.key / index_.n_experts);
  const Matrix& w = *index_.layers[layer].matrices[task.m];
  piece = {.slot = task.slot,
           .m = task.m,
           .matrix = &w,
           .place = index_.layers[layer].experts[static_cast<size_t>(slot.key % index_.n_experts)][task.m],
           .begin = task.group,
           .skip = slot.given_up || slot.failed.load(std::memory_order_relaxed)};
  piece.end = std::min(w.n_groups(), task.group + groups_of(w, piece.place, piece_bytes_));
  task.group = piece.end;
  if (remembered_ && !piece.skip) {
    // What was read just now, a cache below this system may still have.
    Piece other = piece;
    const int64_t expert = (slot.key + index_.n_experts / 2) % index_.n_experts;
    other.place = index_.layers[layer].experts[static_cast<size_t>(expert)][task.m];
    remembered_->push_back(read_of(other, {}));
  }
  if (task.group == w.n_groups()) tasks.pop();
  return true;
}

ExpertRead ExpertStore::read_of(const Piece& piece, std::span<std::byte> window) const {
  const int64_t row = piece.begin * 16, n_rows = std::min(piece.matrix->n_out, piece.end * 16) - row;
  return {.tensor = piece.place.tensor,
          .begin = piece.place.begin + static_cast<uint64_t>(row) * piece.place.row_bytes,
          .bytes = static_cast<uint64_t>(n_rows) * piece.place.row_bytes,
          .window = window};
}

void ExpertStore::read_and_pack(Piece& piece, std::span<std::byte> window) {
  clock_.begin();
  auto read = reader_->read(read_of(piece, window));
  clock_.end();
  if (read) {
    piece.bytes = read->size();
    pack(piece, *read);
  } else {
    piece.error = std::move(read).error();
  }
}

void ExpertStore::pack(const Piece& piece, std::span<const std::byte> bytes) {
  const uint64_t start = now_ns();
  const Slot& slot = slots_[static_cast<size_t>(piece.slot)];
  const Matrix& w = *piece.matrix;
  const int64_t n_rows = std::min(w.n_out, piece.end * 16) - piece.begin * 16;
  const auto row_bytes = static_cast<int64_t>(piece.place.row_bytes);
  std::byte* group = slot.data + slot.offset[piece.m] + piece.begin * w.group_bytes;
  for (int64_t at = 0; at < n_rows; at += 16, group += w.group_bytes) {
    table_.pack[static_cast<size_t>(w.type)]({.rows = bytes.data() + at * row_bytes,
                                              .row_bytes = row_bytes,
                                              .n_rows = static_cast<int>(std::min<int64_t>(16, n_rows - at)),
                                              .k = w.n_in,
                                              .group = group});
  }
  pack_ns_.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

/// A thread of its own for each read: reads and packs piece after piece.
void ExpertStore::lane(int index) {
  Piece piece;
  mu_.lock();
  for (;;) {
    while (!stopping_ && !next_piece(piece)) work_.wait(mu_);
    if (stopping_) break;
    mu_.unlock();
    if (!piece.skip) read_and_pack(piece, window(index));
    mu_.lock();
    finish_piece(piece);
  }
  mu_.unlock();
}

/// Beside a queue: what keeps the disk at work comes first. One of the packers waits for the queue, the others for
/// work.
void ExpertStore::packer() {
  mu_.lock();
  while (!stopping_ || n_under_way_ > 0) {
    if (!begin_read() && !pack_read() && !wait_for_reads()) work_.wait(mu_);
  }
  mu_.unlock();
  work_.notify_all();  // if they wait while the last read ends
}

/// False: there is nothing to read, or no room for it.
bool ExpertStore::begin_read() {
  Piece piece;
  if (stopping_ || n_under_way_ + n_beginning_ >= depth_ || free_windows_.empty() || !next_piece(piece)) return false;
  if (piece.skip) return finish_piece(piece), true;
  const int i = free_windows_.back();
  free_windows_.pop_back();
  pieces_[static_cast<size_t>(i)] = piece;
  ++n_beginning_;
  mu_.unlock();
  clock_.begin();
  const bool begun = reader_->queue()->begin(i, read_of(piece, window(i)));
  if (!begun) clock_.end();
  mu_.lock();
  --n_beginning_;
  if (begun) {
    ++n_under_way_;  // Not before: who waits for a read that was refused waits for ever.
  } else {
    done_.push_back({.i = i});
  }
  return true;
}

/// False: nothing has been read that is not packed.
bool ExpertStore::pack_read() {
  if (done_.empty()) return false;
  ReadQueue::Done done = std::move(done_.front());
  done_.pop_front();
  Piece piece = pieces_[static_cast<size_t>(done.i)];
  mu_.unlock();
  if (done.error) {
    piece.error = std::move(done.error);
  } else if (done.bytes.empty()) {
    read_and_pack(piece, window(done.i));
  } else {
    piece.bytes = done.bytes.size();
    pack(piece, done.bytes);
  }
  mu_.lock();
  free_windows_.push_back(done.i);
  finish_piece(piece);
  return true;
}

/// False: nothing is known to be under way, or somebody else waits for it.
bool ExpertStore::wait_for_reads() {
  if (n_under_way_ <= 0 || std::exchange(somebody_waits_, true)) return false;
  mu_.unlock();
  std::array<ReadQueue::Done, kMostLanes> done;
  const size_t n = reader_->queue()->wait(done);
  clock_.end(n);
  mu_.lock();
  somebody_waits_ = false;
  n_under_way_ -= static_cast<int>(n);
  for (size_t i = 0; i < n; ++i) done_.push_back(std::move(done[i]));
  work_.notify_all();  // to wait for those that are still under way, and to pack
  return true;
}

// Once more

void ExpertStore::remember_reads(bool on) {
  const MutexLock lock(mu_);
  remembered_.reset();
  if (on) remembered_.emplace();
}

ExpertStore::Replay ExpertStore::replay_reads() {
  while (stats().in_flight > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // what was given up
  std::vector<ExpertRead> reads;
  {
    const MutexLock lock(mu_);
    if (remembered_) std::swap(reads, *remembered_);
  }
  size_t next = 0;
  const uint64_t start = now_ns();
  const uint64_t bytes =
      read_all(*reader_, depth_, windows_.bytes(), BulkReader::window_bytes(piece_bytes_), [&](ExpertRead& read) {
        if (next == reads.size()) return false;
        read = reads[next++];
        return true;
      });
  return {.bytes = bytes, .ns = now_ns() - start};
}

}  // namespace stoker::model
