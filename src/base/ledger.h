#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_annotations.h"

namespace stoker {

class Ledger;

/// A sum of bytes entered in a Ledger under a name; leaving scope gives it back.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept;
  ~Charge() { release(); }

  uint64_t bytes() const { return bytes_; }
  void release();

 private:
  friend class Ledger;
  Charge(Ledger* ledger, size_t line, uint64_t bytes) : ledger_(ledger), line_(line), bytes_(bytes) {}
  Ledger* ledger_ = nullptr;
  size_t line_ = 0;
  uint64_t bytes_ = 0;
};

/// Who may hold how much of the memory limit. Every allocation of 1 MiB and more is charged by name before it is made;
/// the rest of the process is one line, `process`, which main charges at the start with kProcessBytes, a ceiling that a
/// test measures. A line stays once it was charged, so names come from the code, not from requests.
/// Threads: all methods from any thread. A Ledger outlives its charges.
class Ledger {
 public:
  /// What binaries, stacks, small allocations and page tables may take together (docs/architecture.md#memory).
  static constexpr uint64_t kProcessBytes = 24u << 20;

  struct Line {
    std::string name;
    uint64_t bytes;
    uint64_t peak;
  };

  /// `limit_bytes` 0: no limit, only book-keeping.
  explicit Ledger(uint64_t limit_bytes = 0);

  /// Enters `bytes` under `name`; charges of one name add up in one line.
  /// kOutOfMemory: does not fit; the message is the table of all lines with what was wanted, at most 12 lines.
  Result<Charge> charge(const std::string& name, uint64_t bytes);

  uint64_t limit() const { return limit_; }
  uint64_t used() const;
  /// What is left; the largest number when there is no limit.
  uint64_t available() const;
  std::vector<Line> lines() const;

  /// The refusal for a start that cannot work: `wanted` are the lines that the start would charge (names and bytes).
  /// At most 12 lines of text: what needs what, their sum, the limit, and the smallest limit that would work.
  std::string refusal(const std::vector<Line>& wanted) const;

 private:
  friend class Charge;
  void give_back(size_t line, uint64_t bytes) EXCLUDES(mu_);
  size_t line_of(const std::string& name) REQUIRES(mu_);

  const uint64_t limit_;
  mutable Mutex mu_;
  std::vector<Line> lines_ GUARDED_BY(mu_);
  uint64_t used_ GUARDED_BY(mu_) = 0;
};

}  // namespace stoker
