#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/source.h"
#include "text/vocab.h"

namespace stoker::text {

/// A stretch of the text: a token that stands there literally, or text for the algorithm (`token` is kNoToken).
struct Fragment {
  TokenId token;
  std::string_view text;
};

/// Finds control, unknown and user-defined tokens in a text. The longest token of all wins wherever it is, of equally
/// long ones the lower id, of its occurrences the leftmost: what cutting the text by one token after the other gives.
class Partition {
 public:
  /// kUnsupported: a token of more than 4096 bytes (no real one comes near; it would make the search slow).
  static Result<Partition> build(const Source& source, const Vocab& vocab);

  /// Fragments in order, none empty. Without `special`, only user-defined tokens are found.
  std::vector<Fragment> cut(std::string_view text, bool special) const;

 private:
  struct Candidate {
    std::string text;
    TokenId id;
    uint32_t rank;   ///< Place in the order of the rule above.
    int32_t parent;  ///< The longest other candidate that this one starts with, -1 if none.
    bool special;    ///< Of kind control or unknown.
    bool strip_left = false, strip_right = false;  ///< Takes the white space on that side with it.
  };
  struct Hit;
  class Search;

  void index();
  /// The longest candidate at the start of `text`, -1 if none.
  int32_t longest(std::string_view text, bool special) const;
  int32_t allowed(int32_t candidate, bool special) const;

  std::vector<Candidate> candidates_;  // Sorted by text.
  std::vector<uint64_t> pairs_;  // Bit b0 * 256 + b1: some candidate starts so. One-byte candidates set all of b0.
};

}  // namespace stoker::text
