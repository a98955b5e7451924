#include "text/pattern.h"

namespace stoker::text {
namespace {

// Cuts one piece by one expression; what comes out goes on to the next expressions.
class PassSink final : public PieceSink {
 public:
  PassSink(std::span<const Pass> rest, PieceSink& out) : rest_(rest), out_(out) {}
  void piece(std::string_view text) override { split(rest_, text, out_); }

 private:
  std::span<const Pass> rest_;
  PieceSink& out_;
};

size_t first_match(std::span<const Rule> rules, Scanner& scan, size_t pos) {
  for (const Rule& rule : rules) {
    size_t end = rule.match(rule, scan, pos);
    if (end != kNoMatch) return end;
  }
  return kNoMatch;
}

void cut_by_rules(std::span<const Rule> rules, std::string_view text, PieceSink& sink) {
  Scanner scan(text);
  size_t gap = 0;
  for (size_t pos = 0; pos < text.size();) {
    size_t end = first_match(rules, scan, pos);
    if (end == kNoMatch) {
      pos = scan.next(pos);
      continue;
    }
    if (gap < pos) sink.piece(text.substr(gap, pos - gap));
    sink.piece(text.substr(pos, end - pos));
    gap = pos = end;
  }
  if (gap < text.size()) sink.piece(text.substr(gap));
}

}  // namespace

size_t Scanner::run(const CharClass& c, size_t pos, size_t max, size_t* count) const {
  size_t n = 0;
  for (; n < max; ++n) {
    size_t end = one(c, pos);
    if (end == pos) break;
    pos = end;
  }
  if (count != nullptr) *count = n;
  return pos;
}

const Scanner::Space& Scanner::space(size_t pos) {
  if (pos >= space_.begin && pos < space_.end) return space_;
  space_ = {pos, pos, pos, pos};
  for (size_t end = one(kSpaceClass, pos); end != space_.end; end = one(kSpaceClass, end)) {
    space_.last = space_.end;
    space_.end = end;
    if (text_[space_.last] == '\r' || text_[space_.last] == '\n') space_.newline_end = end;
  }
  return space_;
}

void split(std::span<const Pass> passes, std::string_view text, PieceSink& sink) {
  if (text.empty()) return;
  if (passes.empty()) return sink.piece(text);
  const Pass& pass = passes.front();
  auto cut = [&](PieceSink& to) {
    if (pass.cut != nullptr) {
      pass.cut(text, to);
    } else {
      cut_by_rules(pass.rules, text, to);
    }
  };
  if (passes.size() == 1) return cut(sink);
  PassSink next(passes.subspan(1), sink);
  cut(next);
}

}  // namespace stoker::text
