// Sizes as people write them: parse_size and format_bytes of base/memory_limit.h.
#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

constexpr std::string_view kSuffixes = "KMGT";
constexpr std::string_view kExample = "; write a size like 6G, 512M or 1048576K";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether each lead byte has the continuation bytes that it announces, and no others are there.
bool is_utf8(std::string_view text) {
  int more = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0) == 0x80;
    if (continues != (more > 0) || byte > 0xF4) return false;
    if (continues) {
      --more;
    } else {
      more = (byte >= 0xC2 ? 1 : 0) + (byte >= 0xE0 ? 1 : 0) + (byte >= 0xF0 ? 1 : 0);
      if (byte >= 0x80 && more == 0) return false;
    }
  }
  return more == 0;
}

Error bad_size(const std::string& text, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, str_cat("size ", quoted(text), why, kExample)};
}

/// What `rest`, which starts neither with a digit nor with a suffix, does wrong.
std::string_view complaint(std::string_view rest) {
  const char c = rest.front();
  if (c == '.' || c == ',') return " has a fraction, whole numbers are wanted";
  return " has a character that is neither a digit nor one of K M G T";
}

}  // namespace

Result<uint64_t> parse_size(const std::string& text) {
  if (text.empty()) return bad_size(text, " is empty");
  if (!is_utf8(text)) return bad_size(text, " is no UTF-8");
  if (text[0] == '-' || text[0] == '+') return bad_size(text, " has a sign");
  std::optional<uint64_t> value = 0;
  size_t i = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    if (value) value = checked_mul<uint64_t>(*value, 10);
    if (value) value = checked_add<uint64_t>(*value, static_cast<uint64_t>(text[i] - '0'));
  }
  if (i == text.size()) return bad_size(text, " has no suffix K, M, G or T");
  const size_t suffix = kSuffixes.find(text[i]);
  if (suffix == std::string_view::npos) return bad_size(text, complaint(std::string_view(text).substr(i)));
  if (i == 0) return bad_size(text, " has no number before its suffix");
  if (i + 1 != text.size()) return bad_size(text, " goes on after its suffix");
  if (!value) return bad_size(text, " has a number too large for 64 bits");
  value = checked_mul<uint64_t>(*value, uint64_t{1} << (10 * (suffix + 1)));
  if (!value) return bad_size(text, " is out of range, the most is 16777215T");
  return *value;
}

std::string format_bytes(uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  if (bytes < 1024) return str_cat(bytes, kUnits[0]);
  // In tenths, rounded; the unit goes up where rounding reaches 1024.
  for (int unit = 1;; ++unit) {
    const uint64_t one = uint64_t{1} << (10 * unit);
    const uint64_t whole = bytes / one, rest = bytes % one;
    const uint64_t tenths = whole * 10 + (rest / (one / 1024) * 10 + 512) / 1024;
    if (tenths >= 10240 && unit < 6) continue;
    return str_cat(tenths / 10, tenths % 10 != 0 ? str_cat(".", tenths % 10) : "", kUnits[unit]);
  }
}

}  // namespace stoker
