#include "base/ledger.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr size_t kMaxNames = 8;  ///< Lines of a table that get their own name; the rest is summed up as "other".

uint64_t add_capped(uint64_t a, uint64_t b) { return checked_add(a, b).value_or(std::numeric_limits<uint64_t>::max()); }

/// "  weights        5.2 GiB", largest first, the smallest ones merged: at most kMaxNames + 1 lines.
std::string table(std::vector<Ledger::Line> lines) {
  std::erase_if(lines, [](const Ledger::Line& line) { return line.bytes == 0; });
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (lines.size() > kMaxNames + 1) {
    Ledger::Line other{str_cat("other (", lines.size() - kMaxNames, ")"), 0, 0};
    for (size_t i = kMaxNames; i < lines.size(); ++i) other.bytes = add_capped(other.bytes, lines[i].bytes);
    lines.resize(kMaxNames);
    lines.push_back(std::move(other));
  }
  size_t width = 0;
  for (const Ledger::Line& line : lines) width = std::max(width, line.name.size());
  std::string out;
  for (const Ledger::Line& line : lines) {
    const std::string size = format_bytes(line.bytes);
    const std::string gap(width - line.name.size() + 2 + (size.size() < 11 ? 11 - size.size() : 0), ' ');
    out += str_cat("\n  ", line.name, gap, size);
  }
  return out;
}

/// `lines` with `extra` added to the line of its name, or to a new one.
void merge(std::vector<Ledger::Line>& lines, const Ledger::Line& extra) {
  for (Ledger::Line& line : lines) {
    if (line.name != extra.name) continue;
    line.bytes = add_capped(line.bytes, extra.bytes);
    return;
  }
  lines.push_back(extra);
}

}  // namespace

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this == &other) return *this;
  release();
  ledger_ = std::exchange(other.ledger_, nullptr);
  line_ = other.line_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void Charge::release() {
  if (ledger_ != nullptr) ledger_->give_back(line_, bytes_);
  ledger_ = nullptr;
  bytes_ = 0;
}

Ledger::Ledger(uint64_t limit_bytes) : limit_(limit_bytes) {}

size_t Ledger::line_of(const std::string& name) {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].name == name) return i;
  }
  lines_.push_back({name, 0, 0});
  return lines_.size() - 1;
}

Result<Charge> Ledger::charge(const std::string& name, uint64_t bytes) {
  MutexLock lock(mu_);
  const std::optional<uint64_t> sum = checked_add(used_, bytes);
  if (!sum || (limit_ != 0 && *sum > limit_)) {
    const std::string limit = limit_ == 0 ? "no memory limit" : str_cat("memory limit of ", format_bytes(limit_));
    const uint64_t free = (limit_ == 0 ? std::numeric_limits<uint64_t>::max() : limit_) - used_;
    return Error{ErrorCode::kOutOfMemory, str_cat(limit, ": ", name, " wants ", format_bytes(bytes), ", ",
                                                  format_bytes(free), " are free; in use:", table(lines_))};
  }
  const size_t index = line_of(name);
  used_ = *sum;
  lines_[index].bytes += bytes;
  lines_[index].peak = std::max(lines_[index].peak, lines_[index].bytes);
  return Charge(this, index, bytes);
}

void Ledger::give_back(size_t line, uint64_t bytes) {
  MutexLock lock(mu_);
  STOKER_CHECK(line < lines_.size() && lines_[line].bytes >= bytes && used_ >= bytes);
  lines_[line].bytes -= bytes;
  used_ -= bytes;
}

uint64_t Ledger::used() const {
  MutexLock lock(mu_);
  return used_;
}

uint64_t Ledger::available() const {
  MutexLock lock(mu_);
  return (limit_ == 0 ? std::numeric_limits<uint64_t>::max() : limit_) - used_;
}

std::vector<Ledger::Line> Ledger::lines() const {
  MutexLock lock(mu_);
  return lines_;
}

std::string Ledger::refusal(const std::vector<Line>& wanted) const {
  std::vector<Line> all = lines();
  for (const Line& line : wanted) merge(all, line);
  uint64_t sum = 0;
  for (const Line& line : all) sum = add_capped(sum, line.bytes);
  const uint64_t needed_mib = sum / kMiB + (sum % kMiB != 0 ? 1 : 0);
  return str_cat("memory limit of ", format_bytes(limit_), " is too small; needed are:", table(std::move(all)),
                 "\n  together ", format_bytes(sum), "; the smallest limit that works: --memory ", needed_mib, "M");
}

}  // namespace stoker
