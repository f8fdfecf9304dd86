"""PostgreSQL: tables, repositories, the tenant in every statement."""
