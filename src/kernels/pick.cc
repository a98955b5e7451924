#include "base/str_cat.h"
#include "kernels/table.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels {
namespace {

// Each set starts from the next worse one of its family, so that a set with a few kernels of its own is never slower
// than the one below it.
Table make_table(Isa isa) {
  Table table{};
  scalar::fill_matmul(table);
  scalar::fill_vector(table);
  if (isa != Isa::kScalar) fill_native(isa, table);
  table.isa = isa;
  for (MatmulKernels& kernels : table.matmul) kernels.spread = is_intel();
  return table;
}

// Made at the first call and never changed after: threads may read them without a lock.
const std::vector<Table>& all_tables() {
  static const std::vector<Table> tables = [] {
    std::vector<Table> made{make_table(Isa::kScalar)};
    for (Isa isa : available_isas()) {
      if (isa != Isa::kScalar) made.push_back(make_table(isa));
    }
    return made;
  }();
  return tables;
}

}  // namespace

Result<const Table*> table_for(Isa isa) {
  for (const Table& table : all_tables()) {
    if (table.isa == isa) return &table;
  }
  return Error{ErrorCode::kUnsupported,
               str_cat("kernels: no ", isa_name(isa), " on this machine; unset STOKER_ISA to use what it has")};
}

const Table& scalar_table() { return all_tables().front(); }

std::vector<const Table*> runnable_tables() {
  std::vector<const Table*> tables;
  for (const Table& table : all_tables()) tables.push_back(&table);
  return tables;
}

}  // namespace stoker::kernels
