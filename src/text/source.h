#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "text/tokenizer.h"

namespace stoker::text {

/// Tokens with a task of their own.
enum class Role : uint8_t {
  kBos,
  kEos,
  kUnknown,
  kSeparator,
  kPadding,
  kMask,
  kEot,
  kEom,
  kFimPrefix,
  kFimSuffix,
  kFimMiddle,
  kFimPad,
  kFimRepo,
  kFimSeparator,
};
constexpr size_t kRoles = 14;
constexpr TokenId kNoToken = -1;

/// What a file says about its tokenizer, checked one by one, before anything is built from it.
/// Tokens and merges stay owned by the file.
struct Source {
  std::string model;
  std::optional<std::string> pre;
  std::string architecture, general_name;  ///< Lower case.
  std::span<const std::string> tokens, merges;
  bool has_merges = false;
  std::vector<TokenKind> kinds;                      ///< One per token.
  std::vector<uint32_t> score_ranks;                 ///< One per token; lower is better, equal for equal scores.
  std::array<std::optional<TokenId>, kRoles> roles;  ///< kNoToken: the key's id is outside the vocabulary.
  const gguf::Array* scores = nullptr;               ///< As they are, at least one per token; null: all are 0.
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, lowercase, strip_accents;
  bool remove_extra_whitespaces = false;
  std::span<const int64_t> charsmap;  ///< Bytes of the normaliser's table; may be empty.
  bool no_default_bos = false;        ///< Not from the file: what the pre-tokenizer's name implies.
  std::vector<TokenId> suppressed;
  std::vector<std::string> notes;

  double score(size_t id) const {
    if (scores == nullptr) return 0;
    return scores->floats.empty() ? static_cast<double>(scores->ints[id]) : scores->floats[id];
  }
};

/// kNotFound: no tokenizer. kCorrupt: names the key.
Result<Source> read_source(const gguf::File& file);

/// An order-preserving number for a score: greater score, lower rank. NaN is last.
uint32_t score_rank(double score);

}  // namespace stoker::text
