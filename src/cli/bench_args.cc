#include "cli/bench_args.h"

#include "cli/options.h"

namespace stoker::cli {
namespace {

/// The parts between commas.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// An option that takes a list: separated by commas, repeated, or both. `parse` turns one part into a value.
template <class T, class Parse>
CLI::Option* add_list(CLI::App& app, const std::string& names, std::vector<T>& values, const std::string& what,
                      Parse parse) {
  const auto set = [&values, parse](const std::vector<std::string>& given) {
    values.clear();
    for (const std::string& text : given) {
      for (const std::string& part : split(text)) values.push_back(parse(part));
    }
  };
  return app.add_option_function<std::vector<std::string>>(names, set, what)->allow_extra_args(false)->take_all();
}

template <class T>
CLI::Option* add_numbers(CLI::App& app, const std::string& names, std::vector<T>& values, T min, T max,
                         const std::string& what) {
  const std::string name = names.substr(names.rfind("--"));
  const auto parse = [name, min, max](const std::string& text) { return parse_integer(name, text, min, max); };
  return add_list(app, names, values, what, parse)->type_name("N,...");
}

void add_tests(CLI::App& app, BenchArgs& args) {
  constexpr int64_t kMost = engine::Engine::kMostContext;
  add_numbers<int64_t>(app, "-p,--n-prompt", args.prompts, 0, kMost, "Prompt tokens; 0: none")->default_str("512");
  add_numbers<int64_t>(app, "-n,--n-gen", args.lengths, 0, kMost, "Tokens to generate; 0: none")->default_str("128");
  add_numbers<int64_t>(app, "-d,--depth", args.depths, 0, kMost, "Positions that the context holds before")
      ->default_str("0");
  add_numbers<int64_t>(app, "-b,--streams", args.streams, 1, 1024,
                       "Sequences at once; the tokens of all of them are counted")
      ->default_str("1");
  add_integer(app, "-r,--repetitions", args.repetitions, 1, 1000000, "Timed runs of each test, after one to warm up")
      ->default_str("5");
  app.add_flag("--read-loop", args.read_loop, "In turns with each pass, read weights with plain loads, and compare");
}

void add_machine(CLI::App& app, BenchArgs& args) {
  app.add_flag("--machine", args.machine, "Measure memory and arithmetic of this machine, and keep the figures");
  app.add_option("--disk", args.disk, "With --machine: also read this file, or a new one in this folder")
      ->type_name("PATH");
  app.add_option("--kernels", args.kernel_types, "Time the matrix products of these types; none: of all")
      ->type_name("TYPE,...")
      ->delimiter(',')
      ->expected(0, 64);
  app.add_flag("--quick", args.quick, "With --machine and --kernels: rough, for tests");
}

}  // namespace

TableFormat BenchArgs::format() const {
  return json ? TableFormat::kJson : csv ? TableFormat::kCsv : md ? TableFormat::kMarkdown : TableFormat::kText;
}

std::vector<engine::BenchCase> BenchArgs::tests() const {
  std::vector<engine::BenchCase> tests;
  for (const int64_t depth : depths) {
    for (const int64_t n_streams : streams) {
      for (const bool generates : {false, true}) {
        for (const int64_t n : generates ? lengths : prompts) {
          if (n > 0) tests.push_back({.generates = generates, .n = n, .depth = depth, .streams = n_streams});
        }
      }
    }
  }
  return tests;
}

void add_bench_options(CLI::App& app, BenchArgs& args) {
  add_model_options(app, args.model);
  // Lists here, and no model is wanted to measure the machine.
  for (const char* name : {"--model", "--threads", "--kv-type"}) app.remove_option(app.get_option(name));
  app.add_option("-m,--model,models", args.models,
                 "GGUF file, or any shard of a split one, or synth:SHAPE[:TYPE]; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->take_all();
  add_numbers(app, "-t,--threads", args.threads, 1, 1024,
              "Worker threads; default: the processors that this process may use");
  add_list(app, "--kv-type", args.kv_types, "Element types of the key-value cache: q8_0, f16, bf16 or f32",
           [](const std::string& text) { return text; })
      ->type_name("TYPE,...")
      ->default_str("f16");
  add_tests(app, args);
  add_machine(app, args);
  app.add_option("--compare", args.compare, "Add each row's ratio to that of an older run, as --json wrote it")
      ->type_name("OLD.json");
  auto* format = app.add_option_group("format", "How the table is written (at most one); otherwise as text");
  format->add_flag("--md", args.md, "Markdown");
  format->add_flag("--json", args.json, "An array of objects");
  format->add_flag("--csv", args.csv, "Comma-separated values");
  format->require_option(0, 1);
}

}  // namespace stoker::cli
