#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "text/char_class.h"

namespace stoker::text {

inline constexpr CharClass kSpaceClass(kSpace);

/// The text of one piece under one expression. It remembers the last run of white space seen, so that several
/// rules that look to the end of the run, from each of its characters, stay linear together.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), table_(CharTable::get()) {}

  std::string_view text() const { return text_; }
  size_t size() const { return text_.size(); }
  char at(size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }

  /// The position after the character at `pos`, in bounds, if it belongs to `c`; `pos` if not, or at the end.
  size_t one(const CharClass& c, size_t pos) const {
    if (pos >= text_.size()) return pos;
    uint8_t byte = static_cast<uint8_t>(text_[pos]);
    if (byte < 128) return pos + (c.has_ascii(byte) ? 1 : 0);
    Utf8Char wide = decode_utf8(text_.substr(pos));
    return pos + (c.has_wide(wide.code, table_) ? wide.size : 0);
  }
  /// The end of the longest run of characters of `c` from `pos`, at most `max` of them; `count` says how many.
  size_t run(const CharClass& c, size_t pos, size_t max, size_t* count = nullptr) const;
  /// The position after the character at `pos`, whatever it is.
  size_t next(size_t pos) const {
    return pos + (static_cast<uint8_t>(text_[pos]) < 128 ? 1 : decode_utf8(text_.substr(pos)).size);
  }

  /// The white space that `pos`, a white space character, is in, from `pos` on.
  struct Space {
    size_t begin = 0;
    size_t end = 0;
    size_t last = 0;         ///< Start of its last character.
    size_t newline_end = 0;  ///< After its last \r or \n; not above the position asked about when there is none.
  };
  const Space& space(size_t pos);

 private:
  std::string_view text_;
  const CharTable& table_;
  Space space_;
};

constexpr size_t kNoMatch = static_cast<size_t>(-1);
constexpr size_t kMany = static_cast<size_t>(-1);

/// One alternative of an expression. `match` gives the end of the match at `pos`, or kNoMatch; never an empty match.
/// All of them are linear in what they look at; none goes back over a run of characters more than once.
struct Rule {
  size_t (*match)(const Rule& rule, Scanner& scan, size_t pos);
  const CharClass* lead = nullptr;  ///< Classes that the kind of rule does not use are null.
  const CharClass* body = nullptr;
  const CharClass* tail = nullptr;
  size_t min = 1, max = kMany;  ///< Of the body.
  size_t tail_max = kMany;
  std::string_view literal = {};
};

/// One expression: at each position the first rule that matches wins. Or a function that cuts in its own way.
struct Pass {
  std::span<const Rule> rules;
  void (*cut)(std::string_view text, class PieceSink& sink) = nullptr;
};

class PieceSink {
 public:
  virtual void piece(std::string_view text) = 0;

 protected:
  ~PieceSink() = default;
};

/// Cuts `text` by the first expression into matches and the gaps between them, each of these by the next one, and so
/// on. The pieces come in order, none is empty, and together they are `text`.
void split(std::span<const Pass> passes, std::string_view text, PieceSink& sink);

}  // namespace stoker::text
