#include "tests/model/experts/fake_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gguf/writer.h"

namespace stoker::model::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "the store does not get on: %s\n", what);
  std::abort();
}

gguf::File no_file() {
  static const std::string bytes = *gguf::Writer("llama").bytes();
  return std::move(*gguf::File::parse(std::as_bytes(std::span(bytes)), "none"));
}

/// Not at the window's start: that is the reader's choice.
std::span<std::byte> fill(const FakeDisk::Read& read, std::span<std::byte> window) {
  const auto out = window.subspan(window.size() - read.bytes, read.bytes);
  for (uint64_t i = 0; i < read.bytes; ++i) out[i] = byte_at(*read.tensor, read.begin + i);
  return out;
}

}  // namespace

Watchdog::Watchdog(int seconds)
    : thread_([this, seconds] {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        mu_.lock();
        while (!done_) {
          if (!over_.wait_until(mu_, deadline) && !done_) give_up("the time is over");
        }
        mu_.unlock();
      }) {}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mu_);
    done_ = true;
  }
  over_.notify_all();
  thread_.join();
}

std::byte byte_at(const gguf::TensorInfo& tensor, uint64_t offset) {
  uint64_t x = (offset + 1) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(tensor.shard) * 0xD1B54A32D192ED03u;
  x ^= x >> 29;
  return static_cast<std::byte>(x * 0xBF58476D1CE4E5B9u >> 56);
}

void FakeDisk::admit(Held& held) {
  log_.push_back(held.read);
  if (judge_) held.error = judge_(held.read);
  held.done = !hold_;
  if (hold_) held_.push_back(&held);
  changed_.notify_all();
}

Result<std::span<std::byte>> FakeDisk::read(const ExpertRead& read) {
  Held held{.read = {read.tensor, read.begin, read.bytes}};
  {
    const MutexLock lock(mu_);
    admit(held);
    while (hold_ && !held.done) changed_.wait(mu_);
    std::erase(held_, &held);
    if (!held.error) bytes_read_ += read.bytes;
    changed_.notify_all();
  }
  if (time_.count() > 0) std::this_thread::sleep_for(time_);
  if (held.error) return *held.error;
  return fill(held.read, read.window);
}

bool FakeDisk::begin(int i, const ExpertRead& read) {
  if (refuse_every_ > 0 && ++n_asked_ % refuse_every_ == 0) return false;
  {
    const MutexLock lock(mu_);
    const auto [at, is_new] = queue_.try_emplace(i, Queued{.held = {.read = {read.tensor, read.begin, read.bytes}},
                                                           .window = read.window,
                                                           .ready = std::chrono::steady_clock::now() + time_});
    EXPECT_TRUE(is_new) << "read " << i << " is under way already";
    admit(at->second.held);
  }
  if (late_.count() > 0) std::this_thread::sleep_for(late_);
  return true;
}

size_t FakeDisk::collect(std::span<Done> done) {
  size_t n = 0;
  for (auto at = queue_.begin(); at != queue_.end() && n < done.size();) {
    Queued& one = at->second;
    const bool over = (!hold_ || one.held.done) && one.ready <= std::chrono::steady_clock::now();
    if (!over) {
      ++at;
      continue;
    }
    std::erase(held_, &one.held);
    if (!one.held.error) bytes_read_ += one.held.read.bytes;
    done[n] = {.i = at->first, .bytes = {}, .error = std::move(one.held.error)};
    if (!done[n].error) done[n].bytes = fill(one.held.read, one.window);
    ++n;
    at = queue_.erase(at);
  }
  return n;
}

size_t FakeDisk::wait(std::span<Done> done) {
  const MutexLock lock(mu_);
  for (;;) {
    const size_t n = collect(done);
    if (n > 0) return n;
    // Those that take their time are not announced.
    changed_.wait_until(mu_, std::chrono::steady_clock::now() + (time_.count() > 0 ? time_ / 4 : kPatience));
  }
}

void FakeDisk::hold(bool on) {
  const MutexLock lock(mu_);
  hold_ = on;
  changed_.notify_all();
}

std::vector<FakeDisk::Read> FakeDisk::held(size_t n) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const MutexLock lock(mu_);
  std::vector<Read> reads;
  for (;;) {
    reads.clear();
    for (const Held* held : held_) {
      if (!held->done) reads.push_back(held->read);
    }
    if (reads.size() >= n) return reads;
    if (!changed_.wait_until(mu_, deadline)) give_up("too few reads");
  }
}

void FakeDisk::finish(const Read& read, std::optional<Error> error) {
  const MutexLock lock(mu_);
  const auto found = std::find_if(held_.begin(), held_.end(), [&](Held* h) { return !h->done && h->read == read; });
  if (found == held_.end()) give_up("nobody reads this");
  Held& held = **found;
  held.done = true;
  if (error) held.error = std::move(error);
  changed_.notify_all();
}

std::vector<FakeDisk::Read> FakeDisk::finish_next(size_t n) {
  std::vector<Read> all;
  for (size_t i = 0; i < n; ++i) {
    all.push_back(held(1).front());
    finish(all.back());
  }
  return all;
}

void FakeDisk::judge(Judge judge) {
  const MutexLock lock(mu_);
  judge_ = std::move(judge);
}

std::vector<FakeDisk::Read> FakeDisk::log() const {
  const MutexLock lock(mu_);
  return log_;
}

uint64_t FakeDisk::bytes_read() const {
  const MutexLock lock(mu_);
  return bytes_read_;
}

FakeExperts::FakeExperts(int64_t n_experts, int64_t n_used, const std::vector<Shape>& layers) {
  index_.n_experts = n_experts, index_.n_used = n_used;
  for (const Shape& shape : layers) {
    const auto number = static_cast<int64_t>(index_.layers.size());
    ExpertIndex::Layer& layer = index_.layers.emplace_back();
    layer.layer = number;
    layer.matrices.resize(kProjections);
    layer.experts.assign(static_cast<size_t>(n_experts), std::vector<ExpertIndex::Place>(kProjections));
    for (size_t p = 0; p < kProjections; ++p) {
      static constexpr const char* kNames[] = {"gate", "up", "down"};
      const bool down = p == 2;
      const gguf::TypeInfo type = *gguf::type_info(down ? shape.down_type : shape.type);
      ExpertMatrix& w = matrices_.emplace_back();
      w.type = type.type;
      w.n_out = down ? shape.dim : shape.ff, w.n_in = down ? shape.ff : shape.dim;
      w.group_bytes = kernels::group_bytes(type.type, w.n_in);
      w.n_experts = n_experts;
      w.name = "blk." + std::to_string(number) + ".ffn_" + kNames[p] + "_exps.weight";
      const auto row_bytes = static_cast<uint64_t>(w.n_in / type.n_weights * type.n_bytes);
      const uint64_t each = row_bytes * static_cast<uint64_t>(w.n_out);
      tensors_.push_back({.name = w.name,
                          .type_id = static_cast<uint32_t>(type.type),
                          .shape = {n_experts, w.n_out, w.n_in},
                          .shard = static_cast<int>(tensors_.size()),  // tells their bytes apart
                          .offset = 0,
                          .bytes = each * static_cast<uint64_t>(n_experts)});
      layer.matrices[p] = &w;
      for (size_t e = 0; e < layer.experts.size(); ++e) {
        layer.experts[e][p] = {.tensor = &tensors_.back(), .begin = e * each, .row_bytes = row_bytes};
      }
    }
  }
}

uint64_t FakeExperts::file_bytes(size_t layer) const {
  uint64_t sum = 0;
  for (size_t p = 0; p < kProjections; ++p) {
    const ExpertIndex::Layer& l = index_.layers[layer];
    sum += l.experts[0][p].row_bytes * static_cast<uint64_t>(l.matrices[p]->n_out);
  }
  return sum;
}

const std::string& FakeExperts::tensor_name(size_t layer, Projection p) const {
  return index_.layers[layer].matrices[static_cast<size_t>(p)]->name;
}

FakeDisk::Read FakeExperts::read_of(size_t layer, int32_t expert, Projection p) const {
  const auto& place = index_.layers[layer].experts[static_cast<size_t>(expert)][static_cast<size_t>(p)];
  return {.tensor = place.tensor, .begin = place.begin};
}

bool FakeExperts::is(const std::byte* data, size_t layer, int32_t expert, Projection p) const {
  const Matrix& w = *index_.layers[layer].matrices[static_cast<size_t>(p)];
  const auto& place = index_.layers[layer].experts[static_cast<size_t>(expert)][static_cast<size_t>(p)];
  const auto row_bytes = static_cast<int64_t>(place.row_bytes);
  std::vector<std::byte> rows(static_cast<size_t>(w.n_out * row_bytes));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = byte_at(*place.tensor, place.begin + i);
  std::vector<std::byte> room(static_cast<size_t>(w.group_bytes) + 64);
  std::byte* const group = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64);
  for (int64_t row = 0; row < w.n_out; row += 16, data += w.group_bytes) {
    kernels::scalar_table().pack[static_cast<size_t>(w.type)](
        {.rows = rows.data() + row * row_bytes,
         .row_bytes = row_bytes,
         .n_rows = static_cast<int>(std::min<int64_t>(16, w.n_out - row)),
         .k = w.n_in,
         .group = group});
    if (std::memcmp(group, data, static_cast<size_t>(w.group_bytes)) != 0) return false;
  }
  return true;
}

int64_t FakeExperts::key_of(const FakeDisk::Read& read) const {
  for (size_t layer = 0; layer < index_.layers.size(); ++layer) {
    for (const auto& place : index_.layers[layer].experts[0]) {
      if (place.tensor != read.tensor) continue;
      const uint64_t each = read.tensor->bytes / static_cast<uint64_t>(index_.n_experts);
      return static_cast<int64_t>(layer) * index_.n_experts + static_cast<int64_t>(read.begin / each);
    }
  }
  return -1;
}

FakeStore::FakeStore(FakeExperts some, ExpertStore::Options options)
    : experts(std::move(some)), file(std::make_unique<gguf::File>(no_file())) {
  options.reader = &disk;
  if (options.lanes == 0) options.lanes = ExpertStore::kMostLanes;
  auto opened = ExpertStore::open(*file, experts.index(), kernels::scalar_table(), ledger, options);
  if (!opened) give_up(opened.error().message.c_str());
  store = std::move(*opened);
}

bool take_all(FakeStore& fake, ExpertRequest& request, size_t layer, std::span<const int32_t> wanted) {
  bool fine = true;
  for (int32_t i; (i = request.take(ExpertRequest::Take::kWait)) >= 0; request.release(i)) {
    for (Projection p : kAllProjections) {
      const std::byte* data = request.wait(i, p);
      fine = fine && data && fake.experts.is(data, layer, wanted[static_cast<size_t>(i)], p);
    }
  }
  return fine && request.all_taken();
}

}  // namespace stoker::model::testing
