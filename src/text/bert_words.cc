#include "text/bert_words.h"

#include "text/char_folds.h"
#include "text/utf8.h"

namespace stoker::text {
namespace {

constexpr char32_t kCut = 0;

}  // namespace

// ASCII symbols are punctuation here, others are not.
bool BertWords::is_punctuation(uint32_t code) const {
  return (table_.kinds(code) & (code < 0x80 ? kPunct | kSymbol : kPunct)) != 0;
}

void BertWords::fold(uint32_t code) {
  std::u32string bases;
  if (form_.strip_accents) {
    append_without_marks(bases, code);
  } else {
    bases += static_cast<char32_t>(code);
  }
  for (const char32_t base : bases) {
    if (form_.lowercase) {
      append_lower(pending_, base);
    } else {
      pending_ += base;
    }
  }
}

void BertWords::append(uint32_t code) {
  append_utf8(word_, code);
  ++n_chars_;
}

/// True where the word ends with this character or before it; one that stays is asked for again.
bool BertWords::take(uint32_t code) {
  if (code == kCut) {
    ++taken_;
    return !word_.empty();
  }
  const bool alone = is_punctuation(code);
  if (alone && !word_.empty()) return true;
  ++taken_;
  append(code);
  return alone;
}

std::string_view BertWords::next() {
  word_.clear();
  n_chars_ = 0;
  for (;;) {
    while (taken_ < pending_.size())
      if (take(pending_[taken_])) return word_;
    pending_.clear();
    taken_ = 0;
    if (at_ == text_.size()) return word_;
    const Utf8Char c = decode_utf8(text_.substr(at_));
    at_ += c.size;
    if (!c.valid || c.code == kReplacement || is_control(c.code)) continue;
    if ((table_.kinds(c.code) & kSpace) != 0) {
      pending_ += kCut;
    } else if (is_ideograph(c.code)) {
      pending_ += kCut;
      fold(c.code);
      pending_ += kCut;
    } else {
      fold(c.code);
    }
  }
}

}  // namespace stoker::text
