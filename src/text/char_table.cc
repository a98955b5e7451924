#include "text/char_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace stoker::text {
namespace {

constexpr uint32_t kRuns[] = {
#include "text/unicode_runs.inc"
};

}  // namespace

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

// A page of one kind is shared by all pages of that kind, so that 4352 pages become some 250.
CharTable::CharTable() {
  std::vector<uint8_t> pages;
  int uniform[16];
  std::fill(std::begin(uniform), std::end(uniform), -1);
  const uint32_t* run = kRuns;
  auto end_of = [&](const uint32_t* r) { return r + 1 == std::end(kRuns) ? 0x110000u : r[1] >> 4; };
  for (uint32_t page = 0; page < std::size(page_of_); ++page) {
    while (end_of(run) <= page * 256) ++run;
    bool one_kind = end_of(run) >= page * 256 + 256;
    int& shared = uniform[*run & 15];
    if (one_kind && shared >= 0) {
      page_of_[page] = static_cast<uint16_t>(shared);
      continue;
    }
    page_of_[page] = static_cast<uint16_t>(pages.size() / 256);
    if (one_kind) shared = page_of_[page];
    for (uint32_t code = page * 256; code < page * 256 + 256; ++code) {
      while (end_of(run) <= code) ++run;
      pages.push_back(*run & 15);
    }
  }
  pages_ = std::make_unique<uint8_t[]>(pages.size());
  std::copy(pages.begin(), pages.end(), pages_.get());
}

}  // namespace stoker::text
