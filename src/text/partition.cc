#include "text/partition.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/str_cat.h"

namespace stoker::text {
namespace {

constexpr size_t kLongestPartedToken = 4096;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// GGUF has no flags for this; these models are known to have them.
struct Strips {
  bool phi3, left_mask, left_bracket_mask;
};

Strips strips_of(const Source& source) {
  std::string_view name = source.general_name, pre = source.pre.has_value() ? *source.pre : std::string_view();
  auto any = [](std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
  };
  return {.phi3 = any(name, {"phi-3", "phi3"}),
          .left_mask = any(pre, {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
                       any(source.architecture, {"nomic-bert-moe", "jina-bert-v3"}),
          .left_bracket_mask = contains(name, "modern-bert")};
}

bool strips_right(const Strips& strips, std::string_view text) {
  return strips.phi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

bool strips_left(const Strips& strips, std::string_view text) {
  return (strips.left_mask && text == "<mask>") || (strips.left_bracket_mask && text == "[MASK]");
}

}  // namespace

// One place of the text where a candidate stands. The heap gives the lowest rank first, then the leftmost.
struct Partition::Hit {
  uint32_t rank;
  int32_t candidate;
  size_t at;
  bool operator<(const Hit& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

// Takes hits in order of rank. A place holds one hit at a time, its longest; when that runs into something taken, the
// next shorter one of the place takes its turn later.
class Partition::Search {
 public:
  Search(const Partition& owner, std::string_view text, bool special) : owner_(owner), text_(text), special_(special) {}

  std::vector<Fragment> run() {
    find_hits();
    if (hits_.empty()) return text_.empty() ? std::vector<Fragment>{} : std::vector<Fragment>{{kNoToken, text_}};
    taken_.assign(text_.size(), 0);
    while (!hits_.empty()) {
      std::pop_heap(hits_.begin(), hits_.end());
      Hit hit = hits_.back();
      hits_.pop_back();
      offer(hit);
    }
    return fragments();
  }

 private:
  struct Found {
    size_t begin, end;  ///< White space that the token strips included.
    TokenId id;
    size_t token_begin, token_end;
  };

  void find_hits() {
    for (size_t at = 0; at < text_.size(); ++at) {
      unsigned first = static_cast<uint8_t>(text_[at]);
      unsigned second = at + 1 < text_.size() ? static_cast<uint8_t>(text_[at + 1]) : 0;
      unsigned pair = first << 8 | second;
      if ((owner_.pairs_[pair >> 6] >> (pair & 63) & 1) == 0) continue;
      int32_t candidate = owner_.longest(text_.substr(at), special_);
      if (candidate >= 0) hits_.push_back({owner_.candidates_[static_cast<size_t>(candidate)].rank, candidate, at});
    }
    std::make_heap(hits_.begin(), hits_.end());
  }

  // What was taken before has a lower rank and so is at least as long: it covers an end of this hit or none of it.
  void offer(const Hit& hit) {
    const Candidate& candidate = owner_.candidates_[static_cast<size_t>(hit.candidate)];
    size_t end = hit.at + candidate.text.size();
    if (taken_[hit.at] != 0) return;
    if (taken_[end - 1] == 0) return take(candidate, hit.at, end);
    int32_t shorter = owner_.allowed(candidate.parent, special_);
    if (shorter < 0) return;
    hits_.push_back({owner_.candidates_[static_cast<size_t>(shorter)].rank, shorter, hit.at});
    std::push_heap(hits_.begin(), hits_.end());
  }

  void take(const Candidate& candidate, size_t token_begin, size_t token_end) {
    size_t begin = token_begin, end = token_end;
    if (candidate.strip_left)
      while (begin > 0 && taken_[begin - 1] == 0 && is_space(text_[begin - 1])) --begin;
    if (candidate.strip_right)
      while (end < text_.size() && taken_[end] == 0 && is_space(text_[end])) ++end;
    std::fill(taken_.begin() + static_cast<ptrdiff_t>(begin), taken_.begin() + static_cast<ptrdiff_t>(end), uint8_t{1});
    found_.push_back({begin, end, candidate.id, token_begin, token_end});
  }

  std::vector<Fragment> fragments() {
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.begin < b.begin; });
    std::vector<Fragment> out;
    size_t pos = 0;
    for (const Found& found : found_) {
      if (found.begin > pos) out.push_back({kNoToken, text_.substr(pos, found.begin - pos)});
      out.push_back({found.id, text_.substr(found.token_begin, found.token_end - found.token_begin)});
      pos = found.end;
    }
    if (pos < text_.size()) out.push_back({kNoToken, text_.substr(pos)});
    return out;
  }

  const Partition& owner_;
  std::string_view text_;
  bool special_;
  std::vector<Hit> hits_;
  std::vector<uint8_t> taken_;
  std::vector<Found> found_;
};

Result<Partition> Partition::build(const Source& source, const Vocab& vocab) {
  Partition out;
  Strips strips = strips_of(source);
  for (size_t id = 0; id < vocab.size(); ++id) {
    TokenKind kind = vocab.kinds[id];
    bool special = kind == TokenKind::kControl || kind == TokenKind::kUnknown;
    if (!special && kind != TokenKind::kUserDefined) continue;
    std::string_view text = vocab.pieces[id];
    if (text.size() > kLongestPartedToken)
      return Error{ErrorCode::kUnsupported, str_cat("tokenizer.ggml.tokens: special token ", id, " has ", text.size(),
                                                    " bytes, at most ", kLongestPartedToken, " are supported")};
    out.candidates_.push_back({.text = std::string(text),
                               .id = static_cast<TokenId>(id),
                               .rank = 0,
                               .parent = -1,
                               .special = special,
                               .strip_left = strips_left(strips, text),
                               .strip_right = strips_right(strips, text)});
  }
  out.index();
  return out;
}

void Partition::index() {
  // Of tokens with the same text the lower id comes first by the rule: it stands last here, where `longest` begins.
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.text != b.text ? a.text < b.text : a.id > b.id; });

  std::vector<size_t> order(candidates_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    size_t size_a = candidates_[a].text.size(), size_b = candidates_[b].text.size();
    return size_a != size_b ? size_a > size_b : candidates_[a].id < candidates_[b].id;
  });
  for (size_t rank = 0; rank < order.size(); ++rank) candidates_[order[rank]].rank = static_cast<uint32_t>(rank);

  pairs_.assign(65536 / 64, 0);
  std::vector<int32_t> open;  // Candidates that the current one may start with, each a start of the next.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    std::string_view text = candidates_[i].text;
    while (!open.empty() && !text.starts_with(candidates_[static_cast<size_t>(open.back())].text)) open.pop_back();
    candidates_[i].parent = open.empty() ? -1 : open.back();
    open.push_back(static_cast<int32_t>(i));
    unsigned first = static_cast<unsigned>(static_cast<uint8_t>(text[0])) << 8;
    unsigned last = first | 255;
    if (text.size() > 1) first = last = first | static_cast<uint8_t>(text[1]);
    for (unsigned pair = first; pair <= last; ++pair) pairs_[pair >> 6] |= uint64_t{1} << (pair & 63);
  }
}

int32_t Partition::allowed(int32_t candidate, bool special) const {
  while (candidate >= 0 && candidates_[static_cast<size_t>(candidate)].special && !special)
    candidate = candidates_[static_cast<size_t>(candidate)].parent;
  return candidate;
}

// All candidates between one that `text` starts with and `text` itself, in the order of texts, start with that one too.
// So the last candidate not after `text`, or one that it starts with, is the longest.
int32_t Partition::longest(std::string_view text, bool special) const {
  auto after = std::upper_bound(candidates_.begin(), candidates_.end(), text,
                                [](std::string_view t, const Candidate& candidate) { return t < candidate.text; });
  int32_t at = static_cast<int32_t>(after - candidates_.begin()) - 1;
  while (at >= 0 && !text.starts_with(candidates_[static_cast<size_t>(at)].text))
    at = candidates_[static_cast<size_t>(at)].parent;
  return allowed(at, special);
}

std::vector<Fragment> Partition::cut(std::string_view text, bool special) const {
  return Search(*this, text, special).run();
}

}  // namespace stoker::text
