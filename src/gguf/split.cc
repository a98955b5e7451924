#include "gguf/split.h"

#include <charconv>

#include "base/str_cat.h"

namespace stoker::gguf {
namespace {

constexpr int kMaxShards = 65535;  // both numbers are u16 in the metadata
constexpr std::string_view kSuffix = ".gguf";

std::string five_digits(int number) {
  const std::string digits = str_cat(number);
  return digits.size() < 5 ? std::string(5 - digits.size(), '0') + digits : digits;
}

/// Cuts "-00002" or "-of-00005" off the end of `text`.
std::optional<int> take_number(std::string_view& text, std::string_view before) {
  constexpr size_t kDigits = 5;
  if (text.size() < before.size() + kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  const std::string_view rest = text.substr(0, text.size() - kDigits);
  if (rest.substr(rest.size() - before.size()) != before) return std::nullopt;
  int number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + kDigits, number);
  if (failure != std::errc() || end != digits.data() + kDigits || number < 1 || number > kMaxShards)
    return std::nullopt;
  text = rest.substr(0, rest.size() - before.size());
  return number;
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view path) {
  if (path.size() < kSuffix.size() || path.substr(path.size() - kSuffix.size()) != kSuffix) return std::nullopt;
  path.remove_suffix(kSuffix.size());
  const std::optional<int> count = take_number(path, "-of-");
  const std::optional<int> number = count ? take_number(path, "-") : std::nullopt;
  if (!number || *number > *count) return std::nullopt;
  return ShardName{std::string(path), *number, *count};
}

std::string shard_path(std::string_view prefix, int number, int count) {
  return str_cat(prefix, "-", five_digits(number), "-of-", five_digits(count), kSuffix);
}

}  // namespace stoker::gguf
