#include "text/lists.h"
#include "text/lists_common.h"

namespace stoker::text::lists {
namespace {

constexpr CharClass kDigits(kDigit);

// Word characters that can follow a run of digits: letters, marks, connectors, letter numbers and circled letters.
constexpr CodeRange kWordRanges[] = {{0x16EE, 0x16F0},   {0x203F, 0x2040},   {0x2054, 0x2054},   {0x2160, 0x2188},
                                     {0x24B6, 0x24E9},   {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303A},
                                     {0xA6E6, 0xA6EF},   {0xFE33, 0xFE34},   {0xFE4D, 0xFE4F},   {0xFF3F, 0xFF3F},
                                     {0x10140, 0x10174}, {0x10341, 0x10341}, {0x1034A, 0x1034A}, {0x103D1, 0x103D5},
                                     {0x12400, 0x1246E}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
constexpr CharClass kWordRest = CharClass{std::span<const CodeRange>(kWordRanges)}.with("_");

// Calls visit(begin, end, count) for every maximal run of `c`.
template <class Visit>
void for_runs(const Scanner& scan, const CharClass& c, Visit visit) {
  for (size_t pos = 0; pos < scan.size();) {
    size_t count;
    size_t end = scan.run(c, pos, kMany, &count);
    if (count > 0) visit(pos, end, count);
    pos = end < scan.size() ? scan.next(end) : end;
  }
}

// The sizes, in characters, are count % 3 (unless 0) and then threes; visit(end of group).
template <class Visit>
void for_groups(const Scanner& scan, const CharClass& c, size_t begin, size_t count, Visit visit) {
  size_t size = count % 3 == 0 ? 3 : count % 3;
  for (; count > 0; count -= size, size = 3) {
    begin = scan.run(c, begin, size);
    visit(begin);
  }
}

// Emits what lies between one cut and the next.
class Cutter {
 public:
  Cutter(std::string_view text, PieceSink& sink) : text_(text), sink_(sink) {}
  ~Cutter() { cut(text_.size()); }
  void cut(size_t pos) {
    if (pos > done_) sink_.piece(text_.substr(done_, pos - done_));
    done_ = pos;
  }

 private:
  std::string_view text_;
  PieceSink& sink_;
  size_t done_ = 0;
};

}  // namespace

void cut_thousands(std::string_view text, PieceSink& sink) {
  Scanner scan(text);
  Cutter cutter(text, sink);
  for_runs(scan, kDigits, [&](size_t begin, size_t end, size_t count) {
    if (count % 3 == 0) cutter.cut(begin);
    // The expression needs digits behind it: no cut where the run ends.
    for_groups(scan, kDigits, begin, count, [&](size_t pos) {
      if (pos < end) cutter.cut(pos);
    });
  });
}

void cut_digit_groups(std::string_view text, PieceSink& sink) {
  Scanner scan(text);
  Cutter cutter(text, sink);
  for_runs(scan, kDigits, [&](size_t begin, size_t end, size_t count) {
    if (scan.one(kLettersMarks, end) > end || scan.one(kWordRest, end) > end) return;
    cutter.cut(begin);
    for_groups(scan, kDigits, begin, count, [&](size_t pos) { cutter.cut(pos); });
  });
}

void cut_number_groups(std::string_view text, PieceSink& sink) {
  Scanner scan(text);
  Cutter cutter(text, sink);
  for_runs(scan, kNumbers, [&](size_t begin, size_t, size_t count) {
    for_groups(scan, kNumbers, begin, count, [&](size_t pos) { cutter.cut(pos); });
  });
}

}  // namespace stoker::text::lists
