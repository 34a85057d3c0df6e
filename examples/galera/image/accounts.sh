# shellcheck shell=bash
# The accounts and the database named in the mounted secret: made where they are missing, never changed.

# The value of one key as an SQL expression. Hexadecimal, so that no value can end the string it is in.
secret_sql() {
    local value
    [[ -r $ACCOUNTS_DIR/$1 ]] || return 1
    value=$(<"$ACCOUNTS_DIR/$1")
    [[ -n $value ]] || return 1
    printf "CONVERT(X'%s' USING utf8mb4)" "$(printf '%s' "$value" | od -An -v -tx1 | tr -d ' \n')"
}

# account_sql USER PASSWORD PRIVILEGES: makes one account, with its privileges, unless it is there. All are SQL expressions.
account_sql() {
    printf '%s\n' "SET @missing = (SELECT COUNT(*) = 0 FROM mysql.global_priv WHERE User = $1 AND Host = '%');" \
        "EXECUTE IMMEDIATE IF(@missing, CONCAT('CREATE USER ', QUOTE($1), '@''%'' IDENTIFIED BY ', QUOTE($2)), 'DO 0');" \
        "EXECUTE IMMEDIATE IF(@missing, CONCAT('GRANT ALL PRIVILEGES ON ', $3, ' TO ', QUOTE($1), '@''%'''), 'DO 0');"
}

# Prints the statements. Names and passwords are quoted on the server's side.
accounts_sql() {
    local database username password admin_password
    printf '%s\n' "SET NAMES utf8mb4;"
    # The bootstrap that initialises a directory runs without privilege tables until they are read.
    printf '%s\n' "FLUSH LOCAL PRIVILEGES;"
    if database=$(secret_sql database); then
        printf '%s\n' "EXECUTE IMMEDIATE CONCAT('CREATE DATABASE IF NOT EXISTS \`', REPLACE($database, '\`', '\`\`'), '\`');"
        if username=$(secret_sql username) && password=$(secret_sql password); then
            # An underscore in a database name is a wildcard to GRANT.
            account_sql "$username" "$password" \
                "CONCAT('\`', REPLACE(REPLACE(REPLACE($database, '\`', '\`\`'), '_', '\\\\_'), '%', '\\\\%'), '\`.*')"
        fi
    fi
    if admin_password=$(secret_sql admin-password); then
        account_sql "'admin'" "$admin_password" "'*.*'"
    fi
}

# For data that came with a history of its own. A fresh directory has the accounts before it is ever started.
ensure_accounts() {
    accounts_sql | run_sql 60 || give_up 1 'the server runs, but the accounts of the secret could not be made (its answer is above)'
}
