#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace stoker::text {

/// A file of tests/golden/tokenizers, made by tools/tokenizer_golden.py; ends the program where there is none.
inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream in(std::string(STOKER_TOKENIZER_GOLDENS) + "/" + name);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) {
    std::fprintf(stderr, "%s/%s is missing or damaged\n", STOKER_TOKENIZER_GOLDENS, name.c_str());
    std::exit(1);
  }
  return json;
}

}  // namespace stoker::text
