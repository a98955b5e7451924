#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/char_table.h"

namespace stoker::text {

/// What BERT's tokenizer does to the characters of a text before it looks words up.
struct BertForm {
  bool lowercase = true;
  bool strip_accents = true;  ///< Decomposes and drops the marks.
};

/// Cuts a text into words: at white space, around punctuation and around ideographs. Control characters and what is
/// not UTF-8 are dropped.
class BertWords {
 public:
  BertWords(std::string_view text, BertForm form) : text_(text), form_(form), table_(CharTable::get()) {}

  /// The next word; empty at the end. Valid until the next call.
  std::string_view next();
  /// Characters of the word that `next` gave.
  size_t n_chars() const { return n_chars_; }

 private:
  bool take(uint32_t code);
  void fold(uint32_t code);
  void append(uint32_t code);
  bool is_punctuation(uint32_t code) const;

  std::string_view text_;
  BertForm form_;
  const CharTable& table_;
  size_t at_ = 0;
  std::u32string pending_;  // Characters, folded, that come before what is at `at_`; U+0000 ends a word.
  size_t taken_ = 0;        // Of these.
  std::string word_;
  size_t n_chars_ = 0;
};

}  // namespace stoker::text
