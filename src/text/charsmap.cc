#include "text/charsmap.h"

#include "base/str_cat.h"

namespace stoker::text {
namespace {

// A unit: whether a value hangs on the node, how far its children are, and for a leaf the value itself.
constexpr uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
constexpr uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
constexpr bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
/// No replaced text comes near; it bounds the work per character, whatever the table.
constexpr size_t kLongest = 1024;

}  // namespace

Result<Charsmap> Charsmap::parse(std::vector<uint8_t> bytes) {
  Charsmap out;
  if (bytes.empty()) return out;
  const auto corrupt = [&](auto... what) {
    return Error{ErrorCode::kCorrupt, str_cat("tokenizer.ggml.precompiled_charsmap: ", what...)};
  };
  if (bytes.size() < kHeader) return corrupt(bytes.size(), " bytes, wanted at least ", kHeader);
  const auto byte = [&bytes](size_t i) { return static_cast<size_t>(bytes[i]); };
  const size_t n = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  if (n == 0 || n % 4 != 0 || n > bytes.size() - kHeader)
    return corrupt("its trie has ", n, " bytes, wanted a multiple of 4 within the ", bytes.size() - kHeader,
                   " there are");
  // So that every replacement ends inside.
  if (bytes.size() > kHeader + n && bytes.back() != 0) return corrupt("the last replacement has no end");
  out.bytes_ = std::move(bytes);
  out.n_units_ = n / 4;
  out.replacements_ = {reinterpret_cast<const char*>(out.bytes_.data()) + kHeader + n, out.bytes_.size() - kHeader - n};
  return out;
}

Charsmap::Match Charsmap::longest(std::string_view text) const {
  Match best;
  if (n_units_ == 0) return best;
  size_t node = offset_of(unit(0));
  for (size_t i = 0; i < text.size() && i < kLongest; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= n_units_ || label_of(unit(node)) != byte) break;
    const bool leaf = has_leaf(unit(node));
    node ^= offset_of(unit(node));
    if (!leaf) continue;
    if (node >= n_units_) break;
    const uint32_t at = value_of(unit(node));
    if (at >= replacements_.size()) break;
    best = {i + 1, replacements_.data() + at};
  }
  return best;
}

}  // namespace stoker::text
